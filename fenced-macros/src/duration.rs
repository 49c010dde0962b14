use proc_macro2::TokenStream;
use quote::{ToTokens, quote_spanned};
use syn::{Expr, Lit, LitStr};

use crate::args::ungrouped;
use crate::crate_path::CratePath;

/// `"250ms"`, `"3s"`, `"2m"`, or an expression of type `Duration`.
pub(crate) enum Duration {
    Millis(LitStr, u64),
    Expr(Expr),
}

impl Duration {
    pub(crate) fn new(expr: Expr) -> syn::Result<Self> {
        let expr = ungrouped(expr);
        match &expr {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Ok(Self::Millis(text.clone(), millis(text)?)),
                Lit::Int(number) => Err(no_unit(number, number.base10_digits())),
                other => Err(syn::Error::new_spanned(other, EXPECTED)),
            },
            _ => Ok(Self::Expr(expr)),
        }
    }

    pub(crate) fn is_zero(&self) -> bool {
        matches!(self, Self::Millis(_, 0))
    }

    /// An expression of type `Duration`.
    pub(crate) fn expand(&self, krate: &CratePath) -> TokenStream {
        match self {
            Self::Millis(text, millis) => {
                let span = text.span();
                let krate = krate.at(span);
                quote_spanned!(span=> #krate::__private::Duration::from_millis(#millis))
            }
            Self::Expr(expr) => expr.to_token_stream(),
        }
    }
}

impl ToTokens for Duration {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Millis(text, _) => text.to_tokens(tokens),
            Self::Expr(expr) => expr.to_tokens(tokens),
        }
    }
}

const EXPECTED: &str =
    "expected a duration: write \"3s\", \"250ms\", or an expression of type `Duration`";

fn no_unit(tokens: impl ToTokens, number: &str) -> syn::Error {
    let message = format!("`{number}` has no unit: write \"{number}s\" or \"{number}ms\"");
    syn::Error::new_spanned(tokens, message)
}

fn millis(text: &LitStr) -> syn::Result<u64> {
    let value = text.value();
    let unit = value.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &value[..value.len() - unit.len()];
    let fail = |message: String| Err(syn::Error::new(text.span(), message));
    if digits.is_empty() || !unit.chars().all(char::is_alphabetic) {
        return fail(format!(
            "`{value}` is not a duration: write a whole number and its unit, as in \"3s\" or \"250ms\""
        ));
    }
    let scale = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "" => return Err(no_unit(text, &value)),
        _ => {
            return fail(format!(
                "unknown unit `{unit}`: use `ms`, `s` or `m`, or an expression of type `Duration`"
            ));
        }
    };
    match digits
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(scale))
    {
        Some(millis) => Ok(millis),
        None => fail(format!("`{value}` is longer than any process runs")),
    }
}
