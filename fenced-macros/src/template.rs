use proc_macro2::{Ident, Span, TokenStream};
use quote::quote_spanned;
use syn::ext::IdentExt as _;
use syn::parse::Parser as _;
use syn::{LitStr, Member};

use crate::crate_path::CratePath;
use crate::errors::Errors;
use crate::function::Function;
use crate::nearest::nearest;
use crate::rules;

/// A lock path with holes: `/locks/<order.sku>`.
pub(crate) struct Template {
    literal: LitStr,
    parts: Vec<Part>,
}

enum Part {
    Text(String),
    Hole(Hole),
}

/// A parameter, or a field of one.
struct Hole {
    name: String,
    root: Ident,
    fields: Vec<Member>,
}

impl Template {
    pub(crate) fn parse(literal: &LitStr) -> syn::Result<Self> {
        let fail = |message| syn::Error::new(literal.span(), message);
        let parts = split(&literal.value(), literal.span()).map_err(fail)?;
        rules::check(parts.iter().map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Hole(_) => None,
        }))
        .map_err(fail)?;
        Ok(Self {
            literal: literal.clone(),
            parts,
        })
    }

    /// Finds the parameters that the holes name, and reports those that name none.
    pub(crate) fn resolve(&mut self, function: &Function, errors: &mut Errors) {
        let names = function.bindings();
        let span = self.literal.span();
        for part in &mut self.parts {
            let hole = match part {
                Part::Hole(hole) => hole,
                Part::Text(text) => {
                    if let Some(name) = names.iter().find(|name| in_braces(text, name)) {
                        let name = name.unraw();
                        errors.at_span(
                            span,
                            format!("`{{{name}}}` is fixed text, so that all callers would share one lock: write `<{name}>`"),
                        );
                    }
                    continue;
                }
            };
            let parameter = if hole.root == "self" {
                function.self_token()
            } else {
                let root = hole.root.unraw();
                names.iter().find(|name| name.unraw() == root).cloned()
            };
            match parameter {
                // The parameter's hygiene, at the place of the template.
                Some(mut name) => {
                    name.set_span(name.span().located_at(span));
                    hole.root = name;
                }
                None => errors.at_span(span, unknown(hole, &names, function)),
            }
        }
    }

    /// An expression that fills the holes.
    pub(crate) fn expand(&self, krate: &CratePath) -> TokenStream {
        let span = self.literal.span();
        let krate = krate.at(span);
        let pattern = &self.literal;
        let steps = self.parts.iter().map(|part| match part {
            Part::Text(text) => quote_spanned!(span=> .text(#text)),
            Part::Hole(Hole { name, root, fields }) => {
                quote_spanned!(span=> .hole(#name, #krate::LockSegment::text(&#root #(.#fields)*)))
            }
        });
        quote_spanned!(span=> #krate::__private::PathBuilder::new(#pattern) #(#steps)* .build())
    }
}

/// Splits a template at its holes; `<<` and `>>` stand for `<` and `>`.
fn split(template: &str, span: Span) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['<', '>']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("<<").or(rest.strip_prefix(">>")) {
            text.push_str(&rest[..1]);
            rest = after;
            continue;
        }
        let Some(hole) = rest.strip_prefix('<') else {
            return Err("`>` without a `<` before it: write `>>` for the character".to_owned());
        };
        let end = hole
            .find(['>', '/', '<'])
            .filter(|end| hole[*end..].starts_with('>'));
        let Some(end) = end else {
            return Err(format!(
                "the hole `{rest}` is never closed: add `>`, or write `<<` for the character"
            ));
        };
        parts.extend((!text.is_empty()).then(|| Part::Text(std::mem::take(&mut text))));
        parts.push(Part::Hole(Hole::parse(&hole[..end], span)?));
        rest = &hole[end + 1..];
    }
    text.push_str(rest);
    parts.extend((!text.is_empty()).then_some(Part::Text(text)));
    Ok(parts)
}

impl Hole {
    /// Reads `order.sku`, `pair.0` or `r#type`; the tokens get the literal's span.
    fn parse(name: &str, span: Span) -> Result<Self, String> {
        let mut members = name.split('.');
        let root = members
            .next()
            .and_then(|root| Ident::parse_any.parse_str(root).ok());
        let fields: Option<Vec<Member>> = members.map(|field| member(field, span)).collect();
        let (Some(mut root), Some(fields), false) = (root, fields, name.contains(' ')) else {
            return Err(if name.is_empty() {
                "the hole `<>` is empty: name a parameter in it, as in `<sku>`".to_owned()
            } else {
                format!(
                    "the hole `<{name}>` must name a parameter or a field of one, as in `<sku>`, `<order.sku>` or `<self.shop>`: pass what has to be computed as a parameter"
                )
            });
        };
        root.set_span(span);
        Ok(Self {
            name: name.to_owned(),
            root,
            fields,
        })
    }
}

/// Named as generated code is: rustc would offer to replace all of the template by a field.
fn member(name: &str, span: Span) -> Option<Member> {
    let span = Span::mixed_site().located_at(span);
    let mut member = syn::parse_str::<Member>(name).ok()?;
    match &mut member {
        Member::Named(ident) => ident.set_span(span),
        Member::Unnamed(index) => index.span = span,
    }
    Some(member)
}

/// Whether `text` has a hole as those of `format!` are written.
fn in_braces(text: &str, parameter: &Ident) -> bool {
    let open = format!("{{{}", parameter.unraw());
    text.match_indices(&open)
        .any(|(at, _)| text[at + open.len()..].starts_with(['}', '.', ':']))
}

fn unknown(hole: &Hole, names: &[Ident], function: &Function) -> String {
    let root = hole.root.to_string();
    if root == "self" {
        return format!(
            "`<{}>` needs a `self` parameter, which this function does not have",
            hole.name
        );
    }
    if function.guard().is_some_and(|guard| guard.binds(&root)) {
        return format!("`<{root}>` is the guard, which exists only once the lock is held");
    }
    let known: Vec<String> = names.iter().map(ToString::to_string).collect();
    let hint = match nearest(&root, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `<{near}>`?"),
        None if known.is_empty() => "the function has none".to_owned(),
        None => format!("there are `{}`", known.join("`, `")),
    };
    format!("`<{root}>` names no parameter: {hint}")
}
