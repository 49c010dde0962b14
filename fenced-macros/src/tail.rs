use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::token::Brace;
use syn::visit::{self, Visit};
use syn::{
    Block, Expr, ExprAsync, GenericArgument, Local, PathArguments, Stmt, Type, TypeParamBound,
};

use crate::function::{braced, names_in};

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

    /// A statement that would act before the lock is held: all in front of the async block runs
    /// when the function is called. What only names a value for the block to capture may stand
    /// there, unless it can leave the function.
    pub(crate) fn unlocked(&self) -> Option<&Stmt> {
        self.before.iter().find(|statement| match statement {
            Stmt::Item(_) => false,
            Stmt::Local(Local { pat, init, .. }) => {
                names_in(pat).is_empty()
                    || init
                        .as_ref()
                        .is_some_and(|init| init.diverge.is_some() || Leaves::is_in(&init.expr))
            }
            Stmt::Expr(..) | Stmt::Macro(_) => true,
        })
    }

    /// Replaces the statements of the async block.
    pub(crate) fn map(
        self,
        section: impl FnOnce(&TokenStream, Brace) -> TokenStream,
    ) -> TokenStream {
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
        let inner = braced(
            block.brace_token,
            &section(&statements.collect(), block.brace_token),
        );
        let future = quote!(#(#attrs)* #async_token #capture #inner);
        let future = match pin {
            Some(pin) => quote!(#pin(#future)),
            None => future,
        };
        quote!(#(#before)* #future)
    }
}

/// Finds a `return` or a `?` that leaves the function.
struct Leaves(bool);

impl Leaves {
    fn is_in(expr: &Expr) -> bool {
        let mut leaves = Self(false);
        leaves.visit_expr(expr);
        leaves.0
    }
}

impl<'ast> Visit<'ast> for Leaves {
    fn visit_expr(&mut self, expr: &'ast Expr) {
        match expr {
            Expr::Return(_) | Expr::Try(_) => self.0 = true,
            Expr::Async(_) | Expr::Closure(_) => {}
            _ => visit::visit_expr(self, expr),
        }
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
