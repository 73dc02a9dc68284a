//! `#[address_space(..)]`, and `#[externally_visible]` on a static.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{Attribute, ItemStatic, Meta, Result, StaticMutability, Stmt, parse_quote};

/// The address spaces a static can be placed in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    Shared,
    Constant,
    Global,
}

impl Space {
    fn parse(tokens: TokenStream) -> Result<Self> {
        const EXPECTED: &str = "expected `shared`, `constant` or `global`";
        if tokens.is_empty() {
            return Err(syn::Error::new(
                proc_macro2::Span::call_site(),
                format!("#[address_space] needs an address space: {EXPECTED}"),
            ));
        }
        let name: Ident = syn::parse2(tokens)
            .map_err(|error| syn::Error::new(error.span(), format!("{EXPECTED} alone")))?;
        match name.to_string().as_str() {
            "shared" => Ok(Self::Shared),
            "constant" => Ok(Self::Constant),
            "global" => Ok(Self::Global),
            "local" => Err(syn::Error::new(
                name.span(),
                "PTX has no statics in local memory: use an ordinary local variable",
            )),
            other => Err(syn::Error::new(
                name.span(),
                format!("`{other}` is no address space: {EXPECTED}"),
            )),
        }
    }

    /// The section that tells the device linker where the static goes.
    fn section(self, visible: bool) -> &'static str {
        match (self, visible) {
            (Self::Shared, false) => ".shared",
            (Self::Shared, true) => ".shared.visible",
            (Self::Constant, false) => ".constant",
            (Self::Constant, true) => ".constant.visible",
            (Self::Global, false) => ".global",
            (Self::Global, true) => ".global.visible",
        }
    }
}

/// Expands `#[address_space(..)]`. When `#[externally_visible]` follows on the
/// same static it is taken along, so the order of the two does not matter.
pub fn expand_address_space(attr: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let space = Space::parse(attr)?;
    let mut item: ItemStatic = syn::parse2(item).map_err(|error| {
        syn::Error::new(
            error.span(),
            "#[address_space] goes on a `static` or `static mut` item",
        )
    })?;
    let visible = take(&mut item.attrs, "externally_visible").is_some();
    expand(space, visible, item)
}

/// Expands `#[externally_visible]` on a static, and `#[address_space(..)]` along
/// with it when that follows.
pub fn expand_visible(mut item: ItemStatic) -> Result<TokenStream> {
    let space = match take(&mut item.attrs, "address_space") {
        Some(Attribute {
            meta: Meta::List(list),
            ..
        }) => Space::parse(list.tokens)?,
        Some(other) => {
            return Err(syn::Error::new_spanned(
                other,
                "#[address_space] needs an address space: `shared`, `constant` or `global`",
            ));
        }
        None => Space::Global,
    };
    expand(space, true, item)
}

fn expand(space: Space, visible: bool, mut item: ItemStatic) -> Result<TokenStream> {
    let mutable = matches!(item.mutability, StaticMutability::Mut(_));
    let no_mangle = item.attrs.iter().any(is_no_mangle);
    item.attrs.retain(|attr| !is_no_mangle(attr));
    let visible = visible || no_mangle;
    let section = space.section(visible);
    // A shared static is the block's own: nobody outside could use its address,
    // but the name is kept when asked for.
    let export = visible.then(|| quote!(unsafe(no_mangle),));

    let host = match space {
        Space::Shared => register_shared(&item),
        Space::Constant => {
            let registered = register_constant(&item);
            let handle = (visible && mutable).then(|| symbol(&item));
            quote!(#registered #handle)
        }
        Space::Global => TokenStream::new(),
    };
    Ok(quote! {
        #[cfg_attr(target_arch = "nvptx64", #export unsafe(link_section = #section))]
        #item
        #host
    })
}

/// Removes `#[address_space(shared)]`; whether it was there. Other address spaces
/// are left alone.
pub fn take_shared(item: &mut ItemStatic) -> Result<bool> {
    let Some(attr) = take(&mut item.attrs, "address_space") else {
        return Ok(false);
    };
    let tokens = match &attr.meta {
        Meta::List(list) => list.tokens.clone(),
        _ => TokenStream::new(),
    };
    if Space::parse(tokens)? == Space::Shared {
        return Ok(true);
    }
    item.attrs.push(attr);
    Ok(false)
}

/// A statement that tells the emulator that the calling thread is about to use a
/// shared static.
pub fn announce(item: &ItemStatic) -> Stmt {
    let (name, ty) = (&item.ident, &item.ty);
    let address = address(item);
    let label = name.to_string();
    let cfgs = item.attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
    parse_quote! {
        #(#cfgs)*
        {
            fn address() -> *mut ::core::primitive::u8 {
                #address
            }
            static SHARED: ::cuda_std::__private::SharedStatic =
                ::cuda_std::__private::SharedStatic::new(
                    #label,
                    ::core::file!(),
                    ::core::line!(),
                    address,
                    ::core::mem::size_of::<#ty>(),
                );
            ::cuda_std::__private::enter_shared_static(&SHARED);
        }
    }
}

/// The address of a static, as an expression of type `*mut u8`.
fn address(item: &ItemStatic) -> TokenStream {
    let name = &item.ident;
    match item.mutability {
        StaticMutability::Mut(_) => quote!((&raw mut #name).cast()),
        _ => quote!((&raw const #name).cast_mut().cast()),
    }
}

/// Tells the emulator, before `main`, where a shared static used in place lies.
fn register_shared(item: &ItemStatic) -> TokenStream {
    let (name, ty) = (&item.ident, &item.ty);
    let cfgs = item.attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
    let address = address(item);
    let label = name.to_string();
    quote! {
        #[cfg(not(target_arch = "nvptx64"))]
        #(#cfgs)*
        const _: () = {
            fn address() -> *mut ::core::primitive::u8 {
                #address
            }
            ::cuda_std::__private::register_shared_static!(#label, address, #ty);
        };
    }
}

/// Tells the host's side, before `main`, where a constant lies.
fn register_constant(item: &ItemStatic) -> TokenStream {
    let ty = &item.ty;
    let cfgs = item.attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
    let address = address(item);
    quote! {
        #[cfg(not(target_arch = "nvptx64"))]
        #(#cfgs)*
        const _: () = {
            fn address() -> *mut ::core::primitive::u8 {
                #address
            }
            ::cuda_std::__private::register_constant_static!(address, #ty);
        };
    }
}

/// The handle type of an exported constant.
fn symbol(item: &ItemStatic) -> TokenStream {
    let ItemStatic {
        vis,
        ident: name,
        ty,
        ..
    } = item;
    let cfgs: Vec<_> = item
        .attrs
        .iter()
        .filter(|attr| attr.path().is_ident("cfg"))
        .collect();
    let label = name.to_string();
    let doc = format!("Handle of the constant `{label}`, by which a launcher sets it.");
    quote! {
        #[cfg(not(target_arch = "nvptx64"))]
        #(#cfgs)*
        #[doc = #doc]
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #vis struct #name {}

        // SAFETY: NAME and Value are those of the static, and the address is its own.
        #[cfg(not(target_arch = "nvptx64"))]
        #(#cfgs)*
        unsafe impl ::cuda_std::host::Symbol for #name {
            const NAME: &'static ::core::primitive::str = #label;
            type Value = #ty;

            fn host_address() -> *mut Self::Value {
                &raw mut #name
            }
        }
    }
}

/// Removes the attribute whose last path segment is `name`.
fn take(attrs: &mut Vec<Attribute>, name: &str) -> Option<Attribute> {
    let name = format_ident!("{name}");
    let position = attrs.iter().position(|attr| {
        attr.path()
            .segments
            .last()
            .is_some_and(|last| last.ident == name)
    })?;
    Some(attrs.remove(position))
}

/// Whether this is `#[no_mangle]` or `#[unsafe(no_mangle)]`.
pub fn is_no_mangle(attr: &Attribute) -> bool {
    match &attr.meta {
        Meta::Path(path) => path.is_ident("no_mangle"),
        Meta::List(list) if list.path.is_ident("unsafe") => {
            syn::parse2::<Ident>(list.tokens.clone()).is_ok_and(|name| name == "no_mangle")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address_space(attr: TokenStream, item: TokenStream) -> String {
        expand_address_space(attr, item).unwrap().to_string()
    }

    #[test]
    fn each_space_has_its_section() {
        for (space, section) in [
            ("shared", ".shared"),
            ("constant", ".constant"),
            ("global", ".global"),
        ] {
            let space = format_ident!("{space}");
            let expansion = address_space(quote!(#space), quote! { static mut X: u32 = 0; });
            assert!(
                expansion.contains(&format!("link_section = \"{section}\"")),
                "{expansion}"
            );
            assert!(!expansion.contains("no_mangle"), "{expansion}");
        }
    }

    #[test]
    fn the_order_of_the_two_attributes_does_not_matter() {
        let item = quote! { pub static mut X: [f32; 4] = [0.0; 4]; };
        let first = address_space(
            quote!(constant),
            quote! { #[cuda_std::externally_visible] #item },
        );
        let second = expand_visible(syn::parse_quote! { #[address_space(constant)] #item })
            .unwrap()
            .to_string();
        assert_eq!(first, second);
        assert!(first.contains(".constant.visible") && first.contains("unsafe (no_mangle)"));
        assert!(first.contains("Symbol for X"));
    }

    #[test]
    fn no_mangle_exports_too() {
        let expansion = address_space(
            quote!(constant),
            quote! { #[no_mangle] static mut X: u32 = 0; },
        );
        assert!(expansion.contains(".constant.visible"), "{expansion}");
        assert_eq!(expansion.matches("no_mangle").count(), 1, "{expansion}");
    }

    #[test]
    fn an_immutable_constant_has_no_handle_to_write_it_by() {
        let expansion = address_space(quote!(constant), quote! { #[no_mangle] static X: u32 = 0; });
        assert!(!expansion.contains("Symbol"), "{expansion}");
    }

    #[test]
    fn mistakes_are_named() {
        let item = quote! { static mut X: u32 = 0; };
        for (attr, expected) in [
            (quote!(local), "no statics in local memory"),
            (quote!(texture), "`texture` is no address space"),
            (quote!(), "needs an address space"),
            (quote!(shared, 3), "alone"),
        ] {
            let error = expand_address_space(attr, item.clone()).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
        let error = expand_address_space(quote!(shared), quote! { fn f() {} }).unwrap_err();
        assert!(error.to_string().contains("goes on a `static`"), "{error}");
    }
}
