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
            return Ok(Self(Some(generated(path))));
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
        self.0
            .as_ref()
            .map_or_else(|| quote_spanned!(span=> ::fenced), Path::to_token_stream)
    }
}

/// The path as generated code, so that no lint asks to shorten what has to be absolute.
fn generated(mut path: Path) -> Path {
    if path
        .segments
        .first()
        .is_some_and(|first| first.ident != "$crate")
    {
        for segment in &mut path.segments {
            let span = segment.ident.span();
            segment.ident.set_span(Span::call_site().located_at(span));
        }
    }
    path
}
