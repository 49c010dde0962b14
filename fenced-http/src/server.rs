mod admit;
mod authority;
mod endpoint;
#[cfg(feature = "axum")]
mod extract;
mod fence_server;
mod held;
mod layer;
mod refusal;
mod route;
mod visit;

pub use authority::Authority;
pub use endpoint::FenceEndpoint;
#[cfg(feature = "axum")]
pub use extract::PassedFence;
pub use fence_server::{FenceServer, FenceServerBuilder};
pub use held::Held;
pub use layer::{FenceLayer, FenceService};
pub use refusal::Problem;
pub use route::Route;
