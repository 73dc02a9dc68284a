//! `#[gpu_only]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{ItemFn, Result, Signature};

/// Expands `#[gpu_only]` on a function or a method.
pub fn expand(attr: TokenStream, item: TokenStream) -> Result<TokenStream> {
    if !attr.is_empty() {
        return Err(syn::Error::new_spanned(
            attr,
            "#[gpu_only] takes no arguments",
        ));
    }
    let ItemFn {
        attrs,
        vis,
        sig,
        block,
    } = syn::parse2(item)?;
    // The calling conventions of the device do not exist on the host.
    let host_sig = Signature {
        abi: None,
        ..sig.clone()
    };
    let message = format!(
        "`{}` is compiled for the GPU only: it cannot run on the host or in the emulator",
        sig.ident
    );
    Ok(quote! {
        #[cfg(not(target_arch = "nvptx64"))]
        #[allow(unused_variables, unused_mut, clippy::unimplemented)]
        #(#attrs)*
        #vis #host_sig {
            ::core::unimplemented!(#message)
        }

        #[cfg(target_arch = "nvptx64")]
        #(#attrs)*
        #vis #sig #block
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_targets_keep_attributes_and_visibility() {
        let expansion = expand(
            TokenStream::new(),
            quote! { #[inline(always)] pub unsafe extern "C" fn f(x: u32) -> u32 { x } },
        )
        .unwrap()
        .to_string();
        assert_eq!(expansion.matches("# [inline (always)]").count(), 2);
        assert_eq!(expansion.matches("pub unsafe").count(), 2);
        assert_eq!(
            expansion.matches("extern \"C\"").count(),
            1,
            "the host drops the ABI"
        );
    }

    #[test]
    fn arguments_are_refused() {
        let error = expand(quote!(fast), quote! { fn f() {} }).unwrap_err();
        assert!(error.to_string().contains("takes no arguments"));
    }
}
