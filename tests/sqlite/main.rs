//! Several processes on one pair of files, with no server.

mod child;
mod crowd;
mod killed;
mod opening;
mod process;
mod queueing;
mod shop;
mod stopped;
