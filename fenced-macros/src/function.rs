use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::token::Brace;
use syn::visit::{self, Visit};
use syn::{AttrStyle, Attribute, FnArg, Pat, ReturnType, Signature, Type, Visibility};

use crate::errors::Errors;
use crate::guard::Guard;

/// A function whose body is kept as tokens.
///
/// While somebody types, the body is broken most of the time. Not parsing it keeps completion and
/// type checking alive in editors.
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) brace: Brace,
    pub(crate) body: TokenStream,
    guard: Option<Guard>,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let sig: Signature = input
            .parse()
            .map_err(|error| syn::Error::new(error.span(), format!("{error}: {WHERE}")))?;
        if input.peek(syn::Token![;]) {
            return Err(syn::Error::new_spanned(
                &sig.ident,
                "a declaration has no body to run under a lock: put `#[fenced]` on the implementations",
            ));
        }
        let content;
        let brace = syn::braced!(content in input);
        attrs.extend(content.call(Attribute::parse_inner)?.into_iter().map(outer));
        Ok(Self {
            attrs,
            vis,
            sig,
            brace,
            body: content.parse()?,
            guard: None,
        })
    }
}

/// The body is moved to where an inner attribute cannot stand.
fn outer(mut attr: Attribute) -> Attribute {
    attr.style = AttrStyle::Outer;
    attr
}

const WHERE: &str = "`#[fenced]` belongs on an `async fn`";

impl Function {
    /// Takes the guard out of the signature.
    pub(crate) fn take_guard(&mut self, errors: &mut Errors) {
        self.guard = Guard::take(&mut self.sig, errors);
    }

    /// Takes further `#[fenced]` off, which would look for a guard of their own.
    pub(crate) fn take_second_section(&mut self, errors: &mut Errors) {
        self.attrs.retain(|attr| {
            let last = attr.path().segments.last();
            let is_section = last.is_some_and(|last| last.ident == "fenced");
            if is_section {
                errors.at(
                    attr.path(),
                    "a function is one section: take the other lock in a function of its own, and call that one",
                );
            }
            !is_section
        });
    }

    pub(crate) fn guard(&self) -> Option<&Guard> {
        self.guard.as_ref()
    }

    pub(crate) fn has_self(&self) -> bool {
        self.sig.receiver().is_some()
    }

    pub(crate) fn self_token(&self) -> Option<Ident> {
        let receiver = self.sig.receiver()?;
        Some(Ident::new("self", receiver.self_token.span))
    }

    /// The type that is written after `->`.
    pub(crate) fn output(&self) -> Option<&Type> {
        match &self.sig.output {
            ReturnType::Default => None,
            ReturnType::Type(_, ty) => Some(ty),
        }
    }

    /// The names that the parameters bind.
    pub(crate) fn bindings(&self) -> Vec<Ident> {
        let typed = self.sig.inputs.iter().filter_map(|input| match input {
            FnArg::Typed(input) => Some(&*input.pat),
            FnArg::Receiver(_) => None,
        });
        typed.flat_map(names_in).collect()
    }

    /// The whole function, with another body.
    pub(crate) fn with_body(&self, body: &TokenStream) -> TokenStream {
        let Self {
            attrs, vis, sig, ..
        } = self;
        let body = braced(self.brace, body);
        quote!(#(#attrs)* #vis #sig #body)
    }
}

/// Braces in the place of the user's, so that "returning this value" points there.
pub(crate) fn braced(brace: Brace, inner: &TokenStream) -> TokenStream {
    let mut tokens = TokenStream::new();
    brace.surround(&mut tokens, |tokens| inner.to_tokens(tokens));
    tokens
}

/// The names that a pattern binds.
pub(crate) fn names_in(pat: &Pat) -> Vec<Ident> {
    struct Names(Vec<Ident>);
    impl<'ast> Visit<'ast> for Names {
        fn visit_pat_ident(&mut self, pat: &'ast syn::PatIdent) {
            self.0.push(pat.ident.clone());
            visit::visit_pat_ident(self, pat);
        }
    }
    let mut names = Names(Vec::new());
    names.visit_pat(pat);
    names.0
}
