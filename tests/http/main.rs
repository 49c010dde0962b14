//! `fenced-http`: the sink against servers that the tests start, over real connections.

mod conformance;
mod counters;
mod durable;
mod fuzz;
mod gateway;
mod lost;
mod poisoning;
mod shop;
mod statuses;
mod strangers;
mod wire;
mod workshop;
