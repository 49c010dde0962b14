//! Expansions, pretty-printed and compared with the files under `expansions/`, which the tests of
//! the workspace compile and run.
//!
//! `UPDATE_EXPANSIONS=1 cargo test -p fenced-macros` writes the files anew.

use std::path::Path;

use proc_macro2::TokenStream;
use quote::quote;

use crate::derive::lock_segment;
use crate::expand::fenced;

/// What a reader of `cargo expand` is asked to read.
const LONGEST: usize = 25;

fn check(name: &str, expansion: TokenStream) {
    let file = syn::parse2(expansion).expect("an expansion that is Rust");
    let actual = prettyplease::unparse(&file);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("expansions/{name}.rs"));
    if std::env::var_os("UPDATE_EXPANSIONS").is_some() {
        std::fs::write(&path, &actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(actual, expected, "{} differs", path.display());
    assert!(actual.lines().count() <= LONGEST, "{actual}");
    for root in roots(&actual) {
        assert!(["fenced", "core"].contains(&root), "::{root} in {actual}");
    }
}

/// The crates that absolute paths start with.
fn roots(text: &str) -> impl Iterator<Item = &str> {
    let is_path = |before: &str| before.ends_with(|c: char| c.is_alphanumeric() || c == '>');
    text.match_indices("::")
        .filter(move |(at, _)| !is_path(&text[..*at]))
        .filter_map(|(at, _)| text[at + 2..].split("::").next())
}

#[test]
fn method() {
    let method = fenced(
        quote!(lock = "/locks/<order.sku>", timeout = "3s"),
        &quote! {
            pub(crate) async fn sell(&self, guard: FencedGuard<'_>, order: &Order) -> Reply<i64> {
                Ok(self.add(&guard, -1).await?)
            }
        },
    );
    check("method", quote!(impl Shop { #method }));
}

#[test]
fn function() {
    let function = fenced(
        quote!(
            lock = "/locks/all",
            hold = longest,
            reentrant,
            on_lost = "finish",
            release = "detach"
        ),
        &quote! {
            async fn function(guard: FencedGuard<'_>, longest: Duration) -> Reply<impl Display> {
                Ok(guard.token())
            }
        },
    );
    check("function", function);
}

#[test]
fn future() {
    let future = fenced(
        quote!(lock = "/locks/boxed", service = locks),
        &quote! {
            fn future<'a>(
                locks: &'a MemoryLocks,
                guard: FencedGuard<'_>,
            ) -> Pin<Box<dyn Future<Output = Reply<i64>> + Send + 'a>> {
                Box::pin(async move { Ok(guard.token().get()) })
            }
        },
    );
    check("future", future);
}

#[test]
fn segment() {
    let item = quote!(
        struct Id<T: Kind> {
            number: T,
            of: PhantomData<T>,
        }
    );
    let derived = lock_segment(item.clone());
    check("segment", quote!(#item #derived));
}

#[test]
fn a_broken_body_and_a_mistake_keep_the_function() {
    let body =
        quote!(async fn reserve(&self, guard: FencedGuard<'_>) -> Reply<u32> { guard. if 1 });
    let expanded = fenced(quote!(lock = "/locks"), &body).to_string();
    assert!(expanded.contains("guard . if 1"), "{expanded}");
    assert!(!expanded.contains("compile_error"), "{expanded}");
    let expanded = fenced(quote!(lock = "locks", timeout = "3"), &body).to_string();
    assert_eq!(expanded.matches("compile_error").count(), 2, "{expanded}");
    assert!(expanded.contains("let guard : FencedGuard"), "{expanded}");
    assert!(expanded.contains("guard . if 1"), "{expanded}");
}
