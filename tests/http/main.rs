//! `fenced-http`: the sink against servers that the tests start, over real connections.

mod conformance;
mod counters;
