//! The macros of `fenced`; programs use them through that crate.

mod args;
mod crate_path;
mod derive;
mod duration;
mod errors;
mod expand;
mod function;
mod guard;
mod nearest;
mod rules;
#[cfg(test)]
mod snapshots;
mod tail;
mod template;

use proc_macro::TokenStream;

#[allow(
    missing_docs,
    reason = "documented where programs find it, in `fenced`"
)]
#[proc_macro_attribute]
pub fn fenced(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::fenced(args.into(), &item.into()).into()
}

/// Lets a newtype fill a hole of a lock path, with the text of its field.
///
/// A type with several fields needs a hole for each, or an implementation of its own that gives
/// different values different texts. `#[lock_segment(crate = path)]` says where `fenced` is found.
#[proc_macro_derive(LockSegment, attributes(lock_segment))]
pub fn derive_lock_segment(item: TokenStream) -> TokenStream {
    derive::lock_segment(item.into()).into()
}
