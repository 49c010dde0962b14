//! `fenced-http`: the sink against servers that the tests start, over real connections.

mod conformance;
mod counters;
mod fuzz;
mod gateway;
mod lost;
mod shop;
mod statuses;
mod strangers;
mod wire;
mod workshop;
