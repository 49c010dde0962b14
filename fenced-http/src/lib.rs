//! An HTTP sink, and the layer that refuses stale requests on the server.
