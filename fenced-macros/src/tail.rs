use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Block, Expr, ExprAsync, GenericArgument, PathArguments, Stmt, Type, TypeParamBound};

/// A body that ends in `async { … }` or `Box::pin(async { … })`: what `-> impl Future` functions
/// have, and what `#[async_trait]` leaves behind.
pub(crate) struct FutureTail {
    before: Vec<Stmt>,
    pin: Option<Expr>,
    future: ExprAsync,
}

impl FutureTail {
    pub(crate) fn find(body: &TokenStream) -> Option<Self> {
        let mut before = syn::parse2::<Block>(quote!({ #body })).ok()?.stmts;
        let Stmt::Expr(tail, None) = before.pop()? else {
            return None;
        };
        let (pin, future) = match tail {
            Expr::Async(future) => (None, future),
            Expr::Call(mut call) if call.args.len() == 1 && is_box_pin(&call.func) => {
                match call.args.pop()? {
                    Expr::Async(future) => (Some(*call.func), future),
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some(Self {
            before,
            pin,
            future,
        })
    }

    /// Replaces the statements of the async block.
    pub(crate) fn map(self, section: impl FnOnce(&TokenStream) -> TokenStream) -> TokenStream {
        let Self {
            before,
            pin,
            future,
        } = self;
        let ExprAsync {
            attrs,
            async_token,
            capture,
            block,
            ..
        } = future;
        let statements = block.stmts.iter().map(ToTokens::to_token_stream);
        let inner = section(&statements.collect());
        let mut future = quote!(#(#attrs)* #async_token #capture);
        block
            .brace_token
            .surround(&mut future, |tokens| inner.to_tokens(tokens));
        let future = match pin {
            Some(pin) => quote!(#pin(#future)),
            None => future,
        };
        quote!(#(#before)* #future)
    }
}

fn is_box_pin(function: &Expr) -> bool {
    let Expr::Path(function) = function else {
        return false;
    };
    let mut names = function
        .path
        .segments
        .iter()
        .rev()
        .map(|segment| &segment.ident);
    names.next().is_some_and(|name| name == "pin") && names.next().is_some_and(|name| name == "Box")
}

/// What a future's type says that it gives: the `T` of `Future<Output = T>`.
pub(crate) fn output_of(ty: &Type) -> Option<&Type> {
    let bounds = match ty {
        Type::ImplTrait(ty) => &ty.bounds,
        Type::TraitObject(ty) => &ty.bounds,
        Type::Path(ty) => {
            return arguments(&ty.path.segments.last()?.arguments).find_map(
                |argument| match argument {
                    GenericArgument::Type(inner) => output_of(inner),
                    _ => None,
                },
            );
        }
        Type::Paren(ty) => return output_of(&ty.elem),
        Type::Group(ty) => return output_of(&ty.elem),
        _ => return None,
    };
    let future = bounds.iter().find_map(|bound| match bound {
        TypeParamBound::Trait(bound) => bound.path.segments.last(),
        _ => None,
    })?;
    arguments(&future.arguments).find_map(|argument| match argument {
        GenericArgument::AssocType(assoc) if assoc.ident == "Output" => Some(&assoc.ty),
        _ => None,
    })
}

fn arguments(arguments: &PathArguments) -> impl Iterator<Item = &GenericArgument> {
    let written = match arguments {
        PathArguments::AngleBracketed(written) => Some(&written.args),
        _ => None,
    };
    written.into_iter().flatten()
}
