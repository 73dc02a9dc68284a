//! `#[launch_bounds]`.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ItemConst, ItemFn, Result, Token};

/// Expands `#[launch_bounds]` where it stands above `#[kernel]`: puts it below,
/// where `#[kernel]` finds it. On what `#[kernel]` makes of it, it does nothing.
pub fn expand(attr: TokenStream, item: TokenStream) -> Result<TokenStream> {
    if let Ok(item) = syn::parse2::<ItemConst>(item.clone())
        && item.ident == "_"
    {
        return Ok(quote!(#item));
    }
    // A mistake is reported at the attribute as it was written.
    syn::parse2::<LaunchBounds>(attr.clone())?;
    let not_a_kernel = || {
        let message = "#[launch_bounds] goes on a kernel: a function with the attribute #[kernel]";
        Error::new(proc_macro2::Span::call_site(), message)
    };
    let mut function: ItemFn = syn::parse2(item).map_err(|_| not_a_kernel())?;
    if !function.attrs.iter().any(|attr| is(attr, "kernel")) {
        return Err(not_a_kernel());
    }
    function
        .attrs
        .push(syn::parse_quote!(#[launch_bounds(#attr)]));
    Ok(quote!(#function))
}

/// Whether the attribute is `name`, by whatever path.
fn is(attr: &Attribute, name: &str) -> bool {
    let last = attr.path().segments.last();
    last.is_some_and(|segment| segment.ident == name)
}

/// A kernel's bounds, and the attribute that they are from.
pub struct Bounds {
    attribute: Attribute,
    numbers: LaunchBounds,
}

/// `MAX_THREADS` or `MAX_THREADS, MIN_BLOCKS`.
struct LaunchBounds {
    max_threads: Expr,
    min_blocks: Option<Expr>,
}

impl Parse for LaunchBounds {
    fn parse(input: ParseStream) -> Result<Self> {
        const EXPECTED: &str = "#[launch_bounds] takes the largest number of threads per block \
                                and, if need be, the smallest number of blocks per multiprocessor";
        if input.is_empty() {
            return Err(Error::new(input.span(), EXPECTED));
        }
        let max_threads = input.parse()?;
        let mut min_blocks = None;
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
            if !input.is_empty() {
                min_blocks = Some(input.parse()?);
                if !input.is_empty() {
                    input.parse::<Token![,]>()?;
                }
            }
        }
        if !input.is_empty() {
            return Err(Error::new(input.span(), EXPECTED));
        }
        Ok(Self {
            max_threads,
            min_blocks,
        })
    }
}

/// Takes the attribute off a kernel that has it.
pub fn take(attrs: &mut Vec<Attribute>) -> Result<Option<Bounds>> {
    let mut bounds = None;
    for attr in attrs.extract_if(.., |attr| is(attr, "launch_bounds")) {
        if bounds.is_some() {
            return Err(Error::new_spanned(
                attr,
                "a kernel has one #[launch_bounds] only",
            ));
        }
        // Without parentheses there is no list to parse: the message is then that
        // of an empty one.
        let numbers = match attr.meta.require_list() {
            Ok(_) => attr.parse_args::<LaunchBounds>()?,
            Err(_) => syn::parse2(TokenStream::new())
                .map_err(|error: Error| Error::new_spanned(&attr, error))?,
        };
        bounds = Some(Bounds {
            attribute: attr,
            numbers,
        });
    }
    Ok(bounds)
}

impl Bounds {
    /// The checked numbers, an expression of type `LaunchBounds` of `cuda_std`.
    fn value(&self) -> TokenStream {
        let max_threads = &self.numbers.max_threads;
        let min_blocks = match &self.numbers.min_blocks {
            Some(min_blocks) => quote!(::core::option::Option::Some(#min_blocks)),
            None => quote!(::core::option::Option::None),
        };
        quote_spanned! {max_threads.span()=>
            ::cuda_std::__private::LaunchBounds::new(#max_threads, #min_blocks)
        }
    }

    /// What comes with the kernel: on either target a constant that checks the numbers, whether or
    /// not anybody reads them; on the device also the static that `cuda_builder` reads and removes.
    /// The attribute stays on it, or else the compiler would report the import of its name as
    /// unused.
    pub fn items(&self, kernel: &Ident, cfgs: &[&Attribute]) -> TokenStream {
        let name = format!("__launch_bounds.{kernel}");
        let attribute = &self.attribute;
        let value = self.value();
        quote! {
            #(#cfgs)*
            #attribute
            const _: () = {
                const CHECKED: ::cuda_std::__private::LaunchBounds = #value;
                #[cfg(target_arch = "nvptx64")]
                #[unsafe(export_name = #name)]
                #[unsafe(link_section = ".launch_bounds")]
                static LAUNCH_BOUNDS: [::core::primitive::u32; 2] = CHECKED.to_array();
            };
        }
    }

    /// What tells launchers: a constant of the handle.
    pub fn handle_constant(&self) -> TokenStream {
        let value = self.value();
        quote! {
            const LAUNCH_BOUNDS: ::core::option::Option<::cuda_std::host::LaunchBounds> =
                ::core::option::Option::Some(#value);
        }
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
    fn the_numbers_reach_device_and_handle() {
        let text = kernel(quote! {
            #[launch_bounds(super::BLOCK, 2)]
            #[cfg(feature = "x")]
            pub unsafe fn k() {}
        })
        .unwrap();
        let value =
            "LaunchBounds :: new (super :: BLOCK , :: core :: option :: Option :: Some (2))";
        assert_eq!(text.matches(value).count(), 2, "{text}");
        assert_eq!(text.matches("\"__launch_bounds.k\"").count(), 1, "{text}");
        assert!(text.contains("link_section = \".launch_bounds\""), "{text}");
        assert!(
            text.contains(
                "# [cfg (feature = \"x\")] # [launch_bounds (super :: BLOCK , 2)] const _ : () = { \
                 const CHECKED"
            ),
            "{text}"
        );
        assert_eq!(text.matches("# [launch_bounds").count(), 1, "{text}");
    }

    #[test]
    fn the_number_of_blocks_may_be_left_out() {
        for item in [
            quote! { #[launch_bounds(64)] unsafe fn k() {} },
            quote! { #[cuda_std::launch_bounds(64,)] unsafe fn k() {} },
        ] {
            let text = kernel(item).unwrap();
            let value = "LaunchBounds :: new (64 , :: core :: option :: Option :: None)";
            assert_eq!(text.matches(value).count(), 2, "{text}");
        }
        let text = kernel(quote! { unsafe fn k() {} }).unwrap();
        assert!(!text.contains("launch_bounds") && !text.contains("LAUNCH_BOUNDS"));
    }

    #[test]
    fn above_the_kernel_attribute_it_moves_below() {
        let text = expand(
            quote!(128, 4),
            quote! { #[cuda_std::kernel] #[inline] pub unsafe fn k(n: u32) { body(n) } },
        )
        .unwrap()
        .to_string();
        assert_eq!(
            text,
            quote! {
                #[cuda_std::kernel] #[inline] #[launch_bounds(128, 4)]
                pub unsafe fn k(n: u32) { body(n) }
            }
            .to_string()
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (item, expected) in [
            (
                quote! { #[launch_bounds] unsafe fn k() {} },
                "takes the largest number of threads per block",
            ),
            (
                quote! { #[launch_bounds()] unsafe fn k() {} },
                "takes the largest number of threads per block",
            ),
            (
                quote! { #[launch_bounds(1, 2, 3)] unsafe fn k() {} },
                "takes the largest number of threads per block",
            ),
            (
                quote! { #[launch_bounds(1)] #[launch_bounds(1)] unsafe fn k() {} },
                "one #[launch_bounds] only",
            ),
        ] {
            let message = kernel(item).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        for item in [quote! { unsafe fn k() {} }, quote! { struct S; }] {
            let message = expand(quote!(64), item).unwrap_err().to_string();
            assert!(message.contains("goes on a kernel"), "{message}");
        }
        assert!(expand(quote!(), quote! { #[kernel] unsafe fn k() {} }).is_err());
    }

    #[test]
    fn what_the_kernel_attribute_makes_of_it_stays() {
        let item = quote! { const _: () = { 1; }; };
        let text = expand(quote!(64), item.clone()).unwrap().to_string();
        assert_eq!(text, item.to_string());
        assert!(expand(quote!(64), quote! { const BLOCK: u32 = 1; }).is_err());
    }
}
