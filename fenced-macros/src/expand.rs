use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::token::Brace;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, ExprReference, Token, Type, parse_quote};

use crate::args::Args;
use crate::errors::Errors;
use crate::function::{Function, braced};
use crate::guard::{Guard, guard_inside};
use crate::tail::{FutureTail, output_of};

pub(crate) fn fenced(args: TokenStream, item: &TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let mut args = Args::parse(args, &mut errors);
    let Some(mut function) = errors.ok(syn::parse2::<Function>(item.clone())) else {
        let errors = errors.into_tokens();
        return quote!(#errors #item);
    };
    function.take_second_section(&mut errors);
    function.take_guard(&mut errors);
    check(&mut args, &function, &mut errors);
    let section = match (&args.lock, function.guard()) {
        (Some(_), Some(guard)) if errors.is_empty() => Section {
            args: &args,
            function: &function,
            guard,
        }
        .expand(&mut errors),
        _ => None,
    };
    if let Some(section) = section {
        return function.with_body(&section);
    }
    let (errors, placeholder) = (errors.into_tokens(), placeholder(&function));
    quote!(#errors #placeholder)
}

fn check(args: &mut Args, function: &Function, errors: &mut Errors) {
    args.require_lock(&function.sig.ident, errors);
    if let Some(constness) = &function.sig.constness {
        errors.at(
            constness,
            "a `const fn` cannot wait for a lock: leave `const` out",
        );
    }
    if let Some(span) = function.output().and_then(guard_inside) {
        errors.at_span(
            span,
            "the guard cannot leave its section: the lock is free before the caller sees it",
        );
    }
    if let Some(lock) = &mut args.lock {
        lock.resolve(function, errors);
    }
}

/// The function with a body that is only type-checked; emitted next to an error, so that nothing
/// else breaks and editors go on completing.
fn placeholder(function: &Function) -> TokenStream {
    let guard = function.guard().map(Guard::placeholder);
    let body = braced(function.brace, &function.body);
    let function = function.with_body(&quote!(#guard #body));
    quote! {
        #[allow(unreachable_code, unused, clippy::all, clippy::pedantic)]
        #function
    }
}

struct Section<'a> {
    args: &'a Args,
    function: &'a Function,
    guard: &'a Guard,
}

impl Section<'_> {
    /// The function's body.
    fn expand(&self, errors: &mut Errors) -> Option<TokenStream> {
        let function = self.function;
        if function.sig.asyncness.is_some() {
            return Some(self.run(&function.body, function.brace, function.output()));
        }
        let Some(tail) = FutureTail::find(&function.body) else {
            errors.at(
                function.sig.fn_token,
                "`#[fenced]` needs an `async fn`, or a function that ends in an `async` block",
            );
            return None;
        };
        if let Some(statement) = tail.unlocked() {
            errors.at(
                statement,
                "this would run without the lock, when the function is called: move it into the `async` block",
            );
            return None;
        }
        let output = function.output().and_then(output_of);
        let infer = parse_quote!(_);
        let output = output.unwrap_or(&infer);
        Some(tail.map(|body, brace| self.run(body, brace, Some(output))))
    }

    /// Enter, run, leave, answer. Everything of substance is in `Section` and `Entered`.
    fn run(&self, body: &TokenStream, brace: Brace, output: Option<&Type>) -> TokenStream {
        let span = self.service_span();
        let section = self.section(span);
        let [entered, outcome] = ["entered", "outcome"].map(|name| hidden(name, span));
        let output = output.map(erase_impl_trait);
        let answer = self.answer(output.as_ref());
        let body = self.body(body, brace, output.as_ref());
        let guard = self.guard;
        // The service is borrowed for the first statement only, so that the body is free to take
        // `self` by value or by `&mut`.
        quote_spanned! {span=>
            let mut #entered = #section.enter().await;
            let #outcome = #entered.begin(async move |#guard| #body).await;
            #entered.end().await;
            #answer(#outcome)
        }
    }

    /// What the closure runs: the user's block, after a return that is never taken.
    ///
    /// That return tells the compiler the output before it sees the block, so that a mismatch is
    /// reported where the user wrote it. A block of one expression goes without its braces, which
    /// a lint would call needless.
    fn body(&self, body: &TokenStream, brace: Brace, output: Option<&Type>) -> TokenStream {
        let is_expression = syn::parse2::<Expr>(body.clone()).is_ok();
        let body = if is_expression {
            body.clone()
        } else {
            braced(brace, body)
        };
        let output = output.filter(|output| !matches!(output, Type::Infer(_)));
        let expected = output.map(|output| {
            let span = output.span();
            let at = self.args.krate.at(span);
            quote_spanned!(span=> if false { return #at::__private::output::<#output>(); })
        });
        braced(brace, &quote!(#expected #body))
    }

    fn service_span(&self) -> Span {
        match &self.args.service {
            Some(service) => service.span(),
            None => self.function.sig.ident.span(),
        }
    }

    /// A `Section` with every option.
    fn section(&self, span: Span) -> TokenStream {
        let Args {
            lock,
            timeout,
            hold,
            service,
            reentrant,
            on_lost,
            release,
            krate,
            ..
        } = self.args;
        let path = lock.as_ref().map(|lock| lock.expand(krate));
        let at = krate.at(span);
        let section = match service {
            Some(service) => {
                let service = ExprReference {
                    attrs: Vec::new(),
                    and_token: Token![&](span),
                    mutability: None,
                    expr: Box::new(service.clone()),
                };
                quote_spanned!(span=> #at::__private::template_section(#service, #path))
            }
            None if self.function.has_self() => quote_spanned! {span=>
                #at::__private::template_section(<Self as #at::HasLocks>::locks(&self), #path)
            },
            None => quote_spanned!(span=> #at::__private::installed_section(#path)),
        };
        let durations = [("timeout", timeout), ("hold", hold)]
            .into_iter()
            .filter_map(|(name, duration)| {
                let duration = duration.as_ref()?;
                let (name, value) = (Ident::new(name, duration.span()), duration.expand(krate));
                Some(quote_spanned!(duration.span()=> .#name(#value)))
            });
        let reentrant = reentrant.map(|span| quote_spanned!(span=> .reentrant()));
        let on_lost = on_lost
            .as_ref()
            .map(|to| quote_spanned!(to.span()=> .on_lost(#at::OnLost::#to)));
        let release = release
            .as_ref()
            .map(|how| quote_spanned!(how.span()=> .release(#at::Release::#how)));
        quote!(#section #(#durations)* #reentrant #on_lost #release)
    }

    /// The function that makes the output of what the section came to.
    fn answer(&self, output: Option<&Type>) -> TokenStream {
        let span = output.map_or(self.function.sig.ident.span(), syn::spanned::Spanned::span);
        let at = self.args.krate.at(span);
        let output = output.map_or(quote_spanned!(span=> ()), ToTokens::to_token_stream);
        quote_spanned!(span=> <#output as #at::FencedOutput>::from_section)
    }
}

/// A local variable that the user's code can neither see nor shadow.
fn hidden(name: &str, at: Span) -> Ident {
    Ident::new(name, Span::mixed_site().located_at(at))
}

fn erase_impl_trait(ty: &Type) -> Type {
    struct Erase;
    impl VisitMut for Erase {
        fn visit_type_mut(&mut self, ty: &mut Type) {
            if let Type::ImplTrait(_) = ty {
                *ty = parse_quote!(_);
            } else {
                visit_mut::visit_type_mut(self, ty);
            }
        }
    }
    let mut ty = ty.clone();
    Erase.visit_type_mut(&mut ty);
    ty
}
