//! The macro tests, as a caller of edition 2021 sees them.
