//! `#[address_space(..)]`, and `#[externally_visible]` on a static.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::{Attribute, ItemStatic, Meta, Result, StaticMutability, Stmt, Token, parse_quote};

/// The address spaces a static can be placed in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    Shared,
    Constant,
    Global,
}

/// Arguments that other macros of this crate add to `#[address_space]`.
///
/// They leave its work to it: if they removed the attribute, the compiler would report its import
/// as unused.
#[derive(Clone, Copy, Default)]
struct Flags {
    /// `#[externally_visible]` is there as well.
    visible: bool,
    /// The kernel around announces the static to the emulator.
    announced: bool,
    /// `#[externally_visible]` was left to expand first.
    deferred: bool,
}

const VISIBLE: &str = "__visible";
const ANNOUNCED: &str = "__announced";
const DEFERRED: &str = "__deferred";
const EXPECTED: &str = "expected `shared`, `constant` or `global`";

fn parse_arguments(tokens: TokenStream) -> Result<(Space, Flags)> {
    if tokens.is_empty() {
        return Err(syn::Error::new(
            proc_macro2::Span::call_site(),
            format!("#[address_space] needs an address space: {EXPECTED}"),
        ));
    }
    let names = Punctuated::<Ident, Token![,]>::parse_terminated
        .parse2(tokens)
        .map_err(|error| syn::Error::new(error.span(), EXPECTED))?;
    let mut names = names.into_iter();
    let space = Space::named(&names.next().expect("there are tokens, so there is a name"))?;
    let mut flags = Flags::default();
    for name in names {
        match name.to_string().as_str() {
            VISIBLE => flags.visible = true,
            ANNOUNCED => flags.announced = true,
            DEFERRED => flags.deferred = true,
            _ => return Err(syn::Error::new(name.span(), format!("{EXPECTED} alone"))),
        }
    }
    Ok((space, flags))
}

/// The same attribute with one more argument.
fn with_flag(attr: &Attribute, flag: &str) -> Attribute {
    let path = attr.path();
    let arguments = arguments(attr);
    let flag = format_ident!("{flag}");
    parse_quote!(#[#path(#arguments, #flag)])
}

/// What stands between an attribute's parentheses.
fn arguments(attr: &Attribute) -> TokenStream {
    match &attr.meta {
        Meta::List(list) => list.tokens.clone(),
        _ => TokenStream::new(),
    }
}

impl Space {
    fn named(name: &Ident) -> Result<Self> {
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

/// Expands `#[address_space(..)]`.
pub fn expand_address_space(attr: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let (space, flags) = parse_arguments(attr.clone())?;
    let item: ItemStatic = syn::parse2(item).map_err(|error| {
        syn::Error::new(
            error.span(),
            "#[address_space] goes on a `static` or `static mut` item",
        )
    })?;
    if let Some(position) = find(&item.attrs, "externally_visible") {
        if flags.deferred {
            // It was left to expand first and is still there: the compiler does not know the name.
            return Err(syn::Error::new_spanned(
                &item.attrs[position],
                "cannot find attribute `externally_visible` in this scope; import it with \
                 `use cuda_std::externally_visible;`",
            ));
        }
        // `#[externally_visible]` expands first; the flag says so.
        let flag = format_ident!("{DEFERRED}");
        let mut item = item;
        item.attrs
            .push(parse_quote!(#[::cuda_std::address_space(#attr, #flag)]));
        return Ok(quote!(#item));
    }
    expand(space, flags, item)
}

/// Expands `#[externally_visible]` on a static.
pub fn expand_visible(mut item: ItemStatic) -> Result<TokenStream> {
    match find(&item.attrs, "address_space") {
        Some(position) => {
            item.attrs[position] = with_flag(&item.attrs[position], VISIBLE);
            Ok(quote!(#item))
        }
        None => expand(
            Space::Global,
            Flags {
                visible: true,
                ..Flags::default()
            },
            item,
        ),
    }
}

fn expand(space: Space, flags: Flags, mut item: ItemStatic) -> Result<TokenStream> {
    let mutable = matches!(item.mutability, StaticMutability::Mut(_));
    let no_mangle = item.attrs.iter().any(is_no_mangle);
    item.attrs.retain(|attr| !is_no_mangle(attr));
    let visible = flags.visible || no_mangle;
    let section = space.section(visible);
    // A shared static is the block's own: nobody outside could use its address,
    // but the name is kept when asked for.
    let export = visible.then(|| quote!(unsafe(no_mangle),));

    let host = match space {
        Space::Shared if flags.announced => TokenStream::new(),
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

/// Adds to `#[address_space(shared)]` that the kernel announces the static. Returns whether that
/// attribute is there; other address spaces are left alone.
pub fn mark_announced(item: &mut ItemStatic) -> Result<bool> {
    let Some(position) = find(&item.attrs, "address_space") else {
        return Ok(false);
    };
    let attr = &item.attrs[position];
    let (space, _) = parse_arguments(arguments(attr))?;
    if space != Space::Shared {
        return Ok(false);
    }
    item.attrs[position] = with_flag(attr, ANNOUNCED);
    Ok(true)
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

/// Where the attribute is whose last path segment is `name`.
fn find(attrs: &[Attribute], name: &str) -> Option<usize> {
    attrs.iter().position(|attr| {
        attr.path()
            .segments
            .last()
            .is_some_and(|last| last.ident == name)
    })
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
        // Each keeps the other's attribute, so that what was imported is used.
        let first = address_space(
            quote!(constant),
            quote! { #[cuda_std::externally_visible] #item },
        );
        assert!(
            first.contains(
                "# [cuda_std :: externally_visible] # [:: cuda_std :: address_space (constant , __deferred)]"
            ),
            "{first}"
        );
        let second = expand_visible(syn::parse_quote! { #[address_space(constant)] #item })
            .unwrap()
            .to_string();
        assert!(
            second.starts_with("# [address_space (constant , __visible)]"),
            "{second}"
        );

        let last = address_space(quote!(constant, __visible), item);
        assert!(last.contains(".constant.visible") && last.contains("unsafe (no_mangle)"));
        assert!(last.contains("Symbol for X"));
    }

    #[test]
    fn a_static_that_is_announced_does_not_register_itself() {
        let item = quote! { static mut X: u32 = 0; };
        let own = address_space(quote!(shared), item.clone());
        assert!(own.contains("register_shared_static"), "{own}");
        let announced = address_space(quote!(shared, __announced), item);
        assert!(!announced.contains("register_shared_static"), "{announced}");
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
            (quote!(shared, 3), "expected `shared`"),
            (quote!(shared, twice), "alone"),
        ] {
            let error = expand_address_space(attr, item.clone()).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
        let error = expand_address_space(quote!(shared), quote! { fn f() {} }).unwrap_err();
        assert!(error.to_string().contains("goes on a `static`"), "{error}");
    }
}
