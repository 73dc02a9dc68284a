//! `#[externally_visible]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Item, ItemFn, Result};

use crate::statics;

/// Expands `#[externally_visible]` on a function or a static.
pub fn expand(attr: TokenStream, item: TokenStream) -> Result<TokenStream> {
    if !attr.is_empty() {
        return Err(syn::Error::new_spanned(
            attr,
            "#[externally_visible] takes no arguments",
        ));
    }
    match syn::parse2(item)? {
        Item::Fn(function) => expand_function(function),
        Item::Static(item) => statics::expand_visible(item),
        other => Err(syn::Error::new_spanned(
            other,
            "#[externally_visible] goes on a function or a static",
        )),
    }
}

fn expand_function(mut function: ItemFn) -> Result<TokenStream> {
    // The name is exported on the device alone; on the host it could clash with
    // a symbol of the program.
    function.attrs.retain(|attr| !statics::is_no_mangle(attr));
    Ok(quote! {
        #[cfg_attr(target_arch = "nvptx64", unsafe(no_mangle), unsafe(link_section = ".visible"))]
        #function
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_exported_once_whoever_asked_for_it() {
        for item in [
            quote! { pub extern "C" fn f() {} },
            quote! { #[no_mangle] pub extern "C" fn f() {} },
            quote! { #[unsafe(no_mangle)] pub extern "C" fn f() {} },
        ] {
            let expansion = expand(TokenStream::new(), item).unwrap().to_string();
            assert_eq!(expansion.matches("no_mangle").count(), 1, "{expansion}");
            assert!(expansion.contains("\".visible\""), "{expansion}");
        }
    }

    #[test]
    fn other_items_are_refused() {
        let error = expand(TokenStream::new(), quote! { struct S; }).unwrap_err();
        assert!(error.to_string().contains("a function or a static"));
    }
}
