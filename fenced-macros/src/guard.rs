use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::visit::{self, Visit};
use syn::visit_mut::VisitMut;
use syn::{
    Attribute, FnArg, GenericParam, Lifetime, Pat, PatType, Signature, Type, WherePredicate,
};

use crate::errors::Errors;
use crate::function::names_in;

/// The guard parameter, which callers do not see.
pub(crate) struct Guard {
    attrs: Vec<Attribute>,
    pat: Pat,
    ty: Type,
}

impl Guard {
    /// Takes the parameter out of the signature. References to guards of other sections stay.
    pub(crate) fn take(sig: &mut Signature, errors: &mut Errors) -> Option<Self> {
        let (guards, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut sig.inputs)
            .into_iter()
            .partition(is_guard);
        sig.inputs = rest.into_iter().collect();
        let mut guards = guards.into_iter().filter_map(Self::of);
        let Some(mut guard) = guards.next() else {
            report_missing(sig, errors);
            return None;
        };
        for extra in guards {
            errors.at(extra.pat, "a section has one guard: leave this one out");
        }
        guard.forget_lifetimes(sig);
        if let Some(lifetime) = lifetimes_in(|names| names.visit_type(&guard.ty)).first() {
            errors.at(
                lifetime,
                "a guard lives as long as its section, which no caller can name: write `FencedGuard<'_>`",
            );
        }
        Some(guard)
    }

    fn of(input: FnArg) -> Option<Self> {
        match input {
            FnArg::Typed(PatType { attrs, pat, ty, .. }) => Some(Self {
                attrs,
                pat: *pat,
                ty: *ty,
            }),
            FnArg::Receiver(_) => None,
        }
    }

    pub(crate) fn binds(&self, name: &str) -> bool {
        names_in(&self.pat).iter().any(|bound| bound == name)
    }

    /// As the statement that makes the body compile where nothing is run.
    pub(crate) fn placeholder(&self) -> TokenStream {
        let Self { attrs, pat, ty } = self;
        quote!(#(#attrs)* let #pat: #ty = ::core::unreachable!();)
    }

    /// Forgets lifetimes that only the guard mentions.
    ///
    /// `#[async_trait]` turns the guard's `'_` into a generic parameter; left in place, the method
    /// would no longer match its trait.
    fn forget_lifetimes(&mut self, sig: &mut Signature) {
        let used = lifetimes_in(|names| {
            sig.inputs
                .iter()
                .for_each(|input| names.visit_fn_arg(input));
            names.visit_return_type(&sig.output);
        });
        let mut unused = lifetimes_in(|names| names.visit_type(&self.ty));
        unused.retain(|lifetime| lifetime.ident != "static" && !used.contains(lifetime));
        Elide(&unused).visit_type_mut(&mut self.ty);
        let is_unused = |lifetime: &Lifetime| unused.contains(lifetime);
        sig.generics.params = std::mem::take(&mut sig.generics.params)
            .into_iter()
            .filter(|param| !matches!(param, GenericParam::Lifetime(param) if is_unused(&param.lifetime)))
            .collect();
        if let Some(clause) = &mut sig.generics.where_clause {
            clause.predicates = std::mem::take(&mut clause.predicates)
                .into_iter()
                .filter(|predicate| !matches!(predicate, WherePredicate::Lifetime(bound) if is_unused(&bound.lifetime)))
                .collect();
        }
    }
}

/// As the parameter of the section's closure.
impl ToTokens for Guard {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { attrs, pat, ty } = self;
        tokens.extend(quote!(#(#attrs)* #pat: #ty));
    }
}

fn report_missing(sig: &Signature, errors: &mut Errors) {
    let wrapped = sig.inputs.iter().find_map(|input| match input {
        FnArg::Typed(input) => guard_inside(&input.ty).map(|_| &*input.ty),
        FnArg::Receiver(_) => None,
    });
    match wrapped {
        Some(ty) => errors.at(ty, "take the guard by value: write `FencedGuard<'_>`"),
        None => errors.at(
            &sig.ident,
            "nothing in a `#[fenced]` function can be fenced without its guard: add the parameter `guard: FencedGuard<'_>`",
        ),
    }
}

/// Whether a parameter's type is a path that ends in `FencedGuard`.
fn is_guard(input: &FnArg) -> bool {
    fn names_guard(ty: &Type) -> bool {
        match ty {
            Type::Path(ty) => ty
                .path
                .segments
                .last()
                .is_some_and(|last| last.ident == "FencedGuard"),
            Type::Group(group) => names_guard(&group.elem),
            Type::Paren(paren) => names_guard(&paren.elem),
            _ => false,
        }
    }
    matches!(input, FnArg::Typed(input) if names_guard(&input.ty))
}

/// Where a type mentions `FencedGuard`, at any depth.
pub(crate) fn guard_inside(ty: &Type) -> Option<Span> {
    struct Find(Option<Span>);
    impl<'ast> Visit<'ast> for Find {
        fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
            if segment.ident == "FencedGuard" {
                self.0.get_or_insert(segment.ident.span());
            }
            visit::visit_path_segment(self, segment);
        }
    }
    let mut find = Find(None);
    find.visit_type(ty);
    find.0
}

/// The named lifetimes, `'static` among them.
fn lifetimes_in(collect: impl FnOnce(&mut Lifetimes)) -> Vec<Lifetime> {
    let mut lifetimes = Lifetimes(Vec::new());
    collect(&mut lifetimes);
    lifetimes.0
}

struct Lifetimes(Vec<Lifetime>);

impl<'ast> Visit<'ast> for Lifetimes {
    fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
        if lifetime.ident != "_" {
            self.0.push(lifetime.clone());
        }
    }
}

struct Elide<'a>(&'a [Lifetime]);

impl VisitMut for Elide<'_> {
    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if self.0.contains(lifetime) {
            lifetime.ident = Ident::new("_", lifetime.ident.span());
        }
    }
}
