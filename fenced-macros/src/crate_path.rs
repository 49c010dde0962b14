use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::Path;

/// Where the generated code finds the runtime: `::fenced`, or `crate = …`.
#[derive(Default)]
pub(crate) struct CratePath(Option<Path>);

impl CratePath {
    pub(crate) fn new(path: Path) -> syn::Result<Self> {
        let first = path.segments.first().map(|first| first.ident.to_string());
        let is_absolute =
            path.leading_colon.is_some() || matches!(first.as_deref(), Some("crate" | "$crate"));
        if is_absolute {
            return Ok(Self(Some(path)));
        }
        let shown = path.to_token_stream().to_string().replace(' ', "");
        Err(syn::Error::new_spanned(
            &path,
            format!("the path must be absolute: write `::{shown}` or `crate::{shown}`"),
        ))
    }

    /// The path with `span` on its default tokens.
    ///
    /// rustc reports a failed bound on the whole path of what is called. If only a part of the
    /// path carries the span, the report falls back to the whole attribute.
    pub(crate) fn at(&self, span: Span) -> TokenStream {
        match &self.0 {
            Some(path) => path.to_token_stream(),
            None => quote_spanned!(span=> ::fenced),
        }
    }
}
