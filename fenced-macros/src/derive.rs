use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Data, DeriveInput, Field, Index, Member, Path, Type, parse_quote};

use crate::crate_path::CratePath;
use crate::errors::Errors;

/// `impl LockSegment` for a newtype, whose text is that of its field.
pub(crate) fn lock_segment(item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let implementation = errors
        .ok(syn::parse2::<DeriveInput>(item))
        .and_then(|item| errors.ok(implement(item)));
    let errors = errors.into_tokens();
    quote!(#implementation #errors)
}

fn implement(mut item: DeriveInput) -> syn::Result<TokenStream> {
    let krate = crate_path(&item)?;
    let (member, ty) = newtype(&item)?;
    let span = ty.span();
    let at = krate.at(span);
    if item.generics.type_params().next().is_some() {
        item.generics
            .make_where_clause()
            .predicates
            .push(parse_quote!(#ty: #at::LockSegment));
    }
    let name = &item.ident;
    let (generics, arguments, bounds) = item.generics.split_for_impl();
    let text = quote_spanned!(span=> <#ty as #at::LockSegment>::text(&self.#member));
    Ok(quote! {
        #[automatically_derived]
        impl #generics #at::LockSegment for #name #arguments #bounds {
            fn text(&self) -> #at::__private::Cow<'_, str> {
                #text
            }
        }
    })
}

/// The one field that says something; markers do not.
fn newtype(item: &DeriveInput) -> syn::Result<(Member, Type)> {
    let Data::Struct(data) = &item.data else {
        return Err(syn::Error::new_spanned(
            &item.ident,
            "`LockSegment` is derived for structs of one field: implement `text` for others, with one canonical text for each value",
        ));
    };
    let mut fields = data
        .fields
        .iter()
        .enumerate()
        .filter(|(_, field)| !is_marker(field));
    match (fields.next(), fields.next()) {
        (Some((index, field)), None) => {
            let member = match &field.ident {
                Some(name) => Member::Named(name.clone()),
                None => Member::Unnamed(Index::from(index)),
            };
            Ok((member, field.ty.clone()))
        }
        (Some(_), Some((_, second))) => Err(syn::Error::new_spanned(
            second,
            "two fields could give one text for different values: use a hole for each, or implement `LockSegment` by hand",
        )),
        _ => Err(syn::Error::new_spanned(
            &item.ident,
            "a type with a single value would be a lock that all callers share: write its name into the template",
        )),
    }
}

fn is_marker(field: &Field) -> bool {
    matches!(&field.ty, Type::Path(ty) if ty.path.segments.last().is_some_and(|last| last.ident == "PhantomData"))
}

fn crate_path(item: &DeriveInput) -> syn::Result<CratePath> {
    let mut krate = CratePath::default();
    for attr in item
        .attrs
        .iter()
        .filter(|attr| attr.path().is_ident("lock_segment"))
    {
        attr.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error("expected `crate = …`"));
            }
            krate = CratePath::new(meta.value()?.call(Path::parse_mod_style)?)?;
            Ok(())
        })?;
    }
    Ok(krate)
}
