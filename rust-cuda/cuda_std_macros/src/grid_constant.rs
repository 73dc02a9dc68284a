//! `#[grid_constant]` on a kernel's parameter.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, ItemFn, Result, Type};

/// Whether this is the attribute, by whatever path.
pub fn is_attribute(attr: &Attribute) -> bool {
    let last = attr.path().segments.last();
    last.is_some_and(|segment| segment.ident == "grid_constant")
}

/// Removes the attribute from all parameters, once it has been read.
pub fn strip(function: &mut ItemFn) {
    for argument in &mut function.sig.inputs {
        if let FnArg::Typed(argument) = argument {
            argument.attrs.retain(|attr| !is_attribute(attr));
        }
    }
}

/// What a parameter with the attribute refers to.
pub fn target(ty: &Type) -> Result<Type> {
    match ty {
        Type::Reference(reference)
            if reference.mutability.is_none() && !matches!(*reference.elem, Type::Slice(_)) =>
        {
            Ok((*reference.elem).clone())
        }
        _ => Err(Error::new_spanned(
            ty,
            "#[grid_constant] goes on a parameter `&T`: the kernel reads the `T` where the \
             launch puts it",
        )),
    }
}

/// A parameter of the entry point.
pub enum Entry {
    /// A value of this type; one without a size cannot be a parameter.
    Typed(Type),
    /// An address or a number.
    Scalar,
    /// The address of a value of this type, which the launch has by value.
    Constant(Type),
}

/// The static that `cuda_builder` reads and removes. It has three numbers for each parameter that
/// the launch holds by value: its index, its size, its alignment.
pub fn marker(kernel: &Ident, entries: &[Entry], cfgs: &[&Attribute]) -> TokenStream {
    let mut before = quote!(0);
    let mut numbers = Vec::new();
    for entry in entries {
        match entry {
            Entry::Typed(ty) => {
                before = quote_spanned!(ty.span()=>
                    #before + (::core::mem::size_of::<#ty>() != 0) as ::core::primitive::u32
                );
            }
            Entry::Scalar => before = quote!(#before + 1),
            Entry::Constant(ty) => {
                numbers.push(before.clone());
                numbers.push(quote_spanned!(ty.span()=>
                    ::core::mem::size_of::<#ty>() as ::core::primitive::u32
                ));
                numbers.push(quote_spanned!(ty.span()=>
                    ::core::mem::align_of::<#ty>() as ::core::primitive::u32
                ));
                before = quote!(#before + 1);
            }
        }
    }
    if numbers.is_empty() {
        return TokenStream::new();
    }
    let name = format!("__grid_constant.{kernel}");
    let len = numbers.len();
    quote! {
        #[cfg(target_arch = "nvptx64")]
        #(#cfgs)*
        const _: () = {
            #[unsafe(export_name = #name)]
            #[unsafe(link_section = ".grid_constant")]
            static GRID_CONSTANTS: [::core::primitive::u32; #len] = [#(#numbers),*];
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(item: TokenStream) -> Result<String> {
        let expansion = crate::kernel::expand(TokenStream::new(), item, None)?;
        Ok(expansion.to_string())
    }

    #[test]
    fn the_value_is_the_launchs_and_the_kernel_has_a_reference() {
        let text = kernel(quote! {
            pub unsafe fn k(a: &[f32], n: N, #[cuda_std::grid_constant] table: &Table<f32>) {}
        })
        .unwrap();
        // On the device, a marker; on either target the kernel as it was written.
        assert_eq!(text.matches("table : & Table < f32 >").count(), 2, "{text}");
        assert!(!text.contains("cuda_std :: grid_constant"), "{text}");
        assert!(text.contains("export_name = \"__grid_constant.k\""));
        assert!(text.contains("link_section = \".grid_constant\""));
        let numbers = "static GRID_CONSTANTS : [:: core :: primitive :: u32 ; 3usize] = \
                       [0 + 1 + 1 + (:: core :: mem :: size_of :: < N > () != 0) as \
                       :: core :: primitive :: u32 , \
                       :: core :: mem :: size_of :: < Table < f32 > > () as \
                       :: core :: primitive :: u32 , \
                       :: core :: mem :: align_of :: < Table < f32 > > () as \
                       :: core :: primitive :: u32]";
        assert!(text.contains(numbers), "{text}");
        // The handle takes it by value, and packs all of it.
        let args = "type Args < 'launch > = (:: cuda_std :: host :: In < 'launch , f32 > , N , \
                    Table < f32 > ,)";
        assert!(text.contains(args), "{text}");
        assert_eq!(text.matches("push_bits").count(), 2, "{text}");
        assert!(
            text.contains("kernel_parameter_is_copy :: < Table < f32 > > ()"),
            "{text}"
        );
    }

    #[test]
    fn without_it_there_is_no_marker() {
        let text = kernel(quote! { unsafe fn k(table: &Table<f32>) {} }).unwrap();
        assert!(!text.contains("grid_constant"), "{text}");
    }

    #[test]
    fn it_goes_on_shared_references_only() {
        for item in [
            quote! { unsafe fn k(#[grid_constant] n: u32) {} },
            quote! { unsafe fn k(#[grid_constant] a: &[f32]) {} },
            quote! { unsafe fn k(#[grid_constant] a: &mut Table) {} },
            quote! { unsafe fn k(#[grid_constant] a: *const Table) {} },
        ] {
            let message = kernel(item).unwrap_err().to_string();
            assert!(message.contains("goes on a parameter `&T`"), "{message}");
        }
    }
}
