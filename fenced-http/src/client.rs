mod reply;
mod sink;
mod write;

pub use reply::HttpRefusal;
pub use sink::{Credentials, HttpSink, HttpSinkError, client_builder};
pub use write::HttpWrite;
