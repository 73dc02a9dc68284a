//! `#[kernel]`.

use std::path::Path;

use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::{ToTokens as _, format_ident, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Attribute, Error, FnArg, GenericParam, Item, ItemFn, Lifetime, Lit, Pat, PatType, Result,
    ReturnType, Stmt, Token, Type,
};

use crate::grid_constant::{self, Entry};
use crate::launch_bounds::{self, Bounds};
use crate::statics::{self, is_no_mangle};

/// Expands `#[kernel]`. `file` is the path of the source file, if it is known.
pub fn expand(attr: TokenStream, item: TokenStream, file: Option<&Path>) -> Result<TokenStream> {
    let arguments = syn::parse2::<Arguments>(attr)?;
    let mut function: ItemFn = syn::parse2(item).map_err(|error| {
        Error::new(
            error.span(),
            format!("#[kernel] goes on a function: {error}"),
        )
    })?;
    check_signature(&function)?;
    let parameters = Parameter::parse_all(&function)?;
    grid_constant::strip(&mut function);
    // Exported on the device alone, and only once.
    function.attrs.retain(|attr| !is_no_mangle(attr));
    let bounds = launch_bounds::take(&mut function.attrs)?;

    let handle_name = arguments
        .handle
        .unwrap_or_else(|| handle_name(&function.sig.ident, file));
    let device = device_function(&function, &parameters);
    let bounds_items = bounds
        .as_ref()
        .map(|bounds| bounds.items(&function.sig.ident, &cfgs(&function)));
    let host = host_function(&function)?;
    let handle = handle(&handle_name, &function, &parameters, bounds.as_ref());
    let expansion = quote! { #device #bounds_items #host #handle };
    Ok(match &arguments.cuda_std {
        Some(path) => renamed(expansion, &path.to_token_stream()),
        None => expansion,
    })
}

/// The tokens with this path in place of each `::cuda_std` that begins one.
fn renamed(tokens: TokenStream, path: &TokenStream) -> TokenStream {
    let mut renamed: Vec<TokenTree> = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Ident(name) if name == "cuda_std" && begins_path(&renamed) => {
                renamed.truncate(renamed.len() - 2);
                renamed.extend(path.clone());
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), self::renamed(group.stream(), path));
                inner.set_span(group.span());
                renamed.push(inner.into());
            }
            token => renamed.push(token),
        }
    }
    renamed.into_iter().collect()
}

/// Whether these tokens end in the `::` that a path begins with.
fn begins_path(before: &[TokenTree]) -> bool {
    let is =
        |token: &TokenTree, sign| matches!(token, TokenTree::Punct(it) if it.as_char() == sign);
    match before {
        [before @ .., first, second] if is(first, ':') && is(second, ':') => {
            let goes_on = |token: &TokenTree| match token {
                TokenTree::Ident(word) => word != "as" && word != "impl" && word != "mut",
                token => is(token, '>'),
            };
            !before.last().is_some_and(goes_on)
        }
        _ => false,
    }
}

/// The handle's name: the kernel's, unless the kernel has the name of its file. The parent module
/// then says `mod gemm; pub use gemm::gemm;`, which must not import a type by the module's name.
fn handle_name(kernel: &Ident, file: Option<&Path>) -> Ident {
    let module = file.and_then(|file| match file.file_stem()?.to_str()? {
        "mod" => file.parent()?.file_name()?.to_str(),
        stem => Some(stem),
    });
    if module.is_some_and(|module| kernel == module) {
        format_ident!("{kernel}_handle")
    } else {
        kernel.clone()
    }
}

// --- attribute arguments ---------------------------------------------------------

/// `grid_dim = 2d, block_dim = 1d`, read, checked and, as upstream, not used;
/// `handle = name`; `crate = path`.
#[derive(Default)]
struct Arguments {
    handle: Option<Ident>,
    cuda_std: Option<syn::Path>,
}

impl Parse for Arguments {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut arguments = Self::default();
        while !input.is_empty() {
            let name = input.call(Ident::parse_any)?;
            if !["grid_dim", "block_dim", "handle", "crate"].contains(&name.to_string().as_str()) {
                return Err(Error::new(
                    name.span(),
                    format!(
                        "unknown argument `{name}`: #[kernel] knows `grid_dim`, `block_dim`, \
                         `handle` and `crate`"
                    ),
                ));
            }
            input.parse::<Token![=]>()?;
            if name == "handle" {
                arguments.handle = Some(input.parse()?);
            } else if name == "crate" {
                arguments.cuda_std = Some(input.call(syn::Path::parse_mod_style)?);
            } else {
                dimension(&name, input)?;
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(arguments)
    }
}

fn dimension(name: &Ident, input: ParseStream) -> Result<()> {
    // `2d` is a number with a suffix to the lexer.
    let value: Lit = input.parse()?;
    let text = match &value {
        Lit::Int(number) => number.to_string(),
        Lit::Str(string) => string.value(),
        _ => String::new(),
    };
    if !["1d", "2d", "3d"].contains(&text.to_ascii_lowercase().as_str()) {
        return Err(Error::new(
            value.span(),
            format!("`{name}` is `1d`, `2d` or `3d`"),
        ));
    }
    Ok(())
}

// --- checks ----------------------------------------------------------------------

fn check_signature(function: &ItemFn) -> Result<()> {
    let sig = &function.sig;
    let mut errors: Option<Error> = None;
    let mut refuse = |error: Error| match &mut errors {
        Some(errors) => errors.combine(error),
        None => errors = Some(error),
    };
    if let Some(token) = &sig.asyncness {
        refuse(Error::new(
            token.span,
            "a kernel cannot be `async`: the GPU has no executor",
        ));
    }
    if let Some(token) = &sig.constness {
        refuse(Error::new(
            token.span,
            "a kernel cannot be `const`: it is launched, not evaluated",
        ));
    }
    if sig.unsafety.is_none() {
        refuse(Error::new(
            sig.fn_token.span,
            "a kernel must be an `unsafe fn`: its callers vouch for its pointers and its geometry",
        ));
    }
    for parameter in &sig.generics.params {
        match parameter {
            GenericParam::Lifetime(_) => {}
            GenericParam::Type(_) | GenericParam::Const(_) => refuse(Error::new_spanned(
                parameter,
                "a kernel cannot be generic: write one entry point per type and share a generic \
                 `#[inline(always)]` body",
            )),
        }
    }
    if let Some(variadic) = &sig.variadic {
        refuse(Error::new_spanned(variadic, "a kernel cannot be variadic"));
    }
    if let ReturnType::Type(_, ty) = &sig.output
        && !matches!(&**ty, Type::Tuple(tuple) if tuple.elems.is_empty())
    {
        refuse(Error::new_spanned(
            ty,
            "a kernel returns nothing: write results through a pointer parameter",
        ));
    }
    errors.map_or(Ok(()), Err)
}

// --- parameters ------------------------------------------------------------------

/// How a parameter crosses the launch.
enum Kind {
    /// Pointer and length.
    Slice { element: Type, mutable: bool },
    /// Pointer to one or many values.
    Pointer { target: Type, mutable: bool },
    /// The bits of the value.
    Value,
    /// The bits of the value. The kernel is given their address.
    Constant { target: Type },
}

struct Parameter {
    attrs: Vec<Attribute>,
    pattern: Pat,
    ty: Type,
    kind: Kind,
    /// Whether a slice parameter is a raw slice (`*const [T]`), not a reference.
    raw: bool,
    /// A name for generated code, unlike any of the kernel's own.
    name: Ident,
}

impl Parameter {
    fn parse_all(function: &ItemFn) -> Result<Vec<Self>> {
        let mut parameters = Vec::new();
        for (index, argument) in function.sig.inputs.iter().enumerate() {
            match argument {
                FnArg::Receiver(receiver) => {
                    return Err(Error::new_spanned(
                        receiver,
                        "a kernel cannot be a method: take what `self` holds as parameters",
                    ));
                }
                FnArg::Typed(argument) => parameters.push(Self::parse(index, argument)?),
            }
        }
        Ok(parameters)
    }

    fn parse(index: usize, argument: &PatType) -> Result<Self> {
        let ty = (*argument.ty).clone();
        let (kind, raw) = if argument.attrs.iter().any(grid_constant::is_attribute) {
            let target = grid_constant::target(strip(&ty))?;
            (Kind::Constant { target }, false)
        } else {
            kind(strip(&ty))?
        };
        let name = match &*argument.pat {
            Pat::Ident(pattern) => pattern.ident.clone(),
            _ => format_ident!("arg{index}"),
        };
        Ok(Self {
            attrs: {
                let attrs = argument.attrs.iter();
                let kept = attrs.filter(|attr| !grid_constant::is_attribute(attr));
                kept.cloned().collect()
            },
            pattern: (*argument.pat).clone(),
            ty,
            kind,
            raw,
            name,
        })
    }
}

/// The type without the groups and parentheses that macros and people put
/// around it.
fn strip(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => strip(&group.elem),
        Type::Paren(paren) => strip(&paren.elem),
        other => other,
    }
}

fn kind(ty: &Type) -> Result<(Kind, bool)> {
    let (target, mutable, raw) = match ty {
        Type::Reference(reference) => (
            strip(&reference.elem),
            reference.mutability.is_some(),
            false,
        ),
        Type::Ptr(pointer) => (strip(&pointer.elem), pointer.mutability.is_some(), true),
        Type::ImplTrait(_) => {
            return Err(Error::new_spanned(
                ty,
                "a kernel cannot be generic: `impl Trait` has no layout for the host to pack",
            ));
        }
        _ => return Ok((Kind::Value, false)),
    };
    let kind = match target {
        Type::Slice(slice) => Kind::Slice {
            element: (*slice.elem).clone(),
            mutable,
        },
        Type::Path(path) if path.path.is_ident("str") => {
            return Err(Error::new_spanned(
                ty,
                "a kernel cannot take `str`: take `&[u8]`",
            ));
        }
        Type::TraitObject(_) => {
            return Err(Error::new_spanned(
                ty,
                "a kernel cannot take a trait object: its vtable is the host's",
            ));
        }
        target => Kind::Pointer {
            target: target.clone(),
            mutable,
        },
    };
    Ok((kind, raw))
}

// --- device ----------------------------------------------------------------------

/// The entry point of the PTX.
fn device_function(function: &ItemFn, parameters: &[Parameter]) -> TokenStream {
    let ItemFn {
        attrs,
        vis,
        sig,
        block,
    } = function;
    let name = &sig.ident;
    let lifetimes = &sig.generics;
    let mut inputs = Vec::new();
    let mut entries = Vec::new();
    let mut rebuild = Vec::new();
    for parameter in parameters {
        let Parameter {
            attrs,
            pattern,
            ty,
            kind,
            raw,
            name,
        } = parameter;
        match kind {
            Kind::Slice { element, mutable } => {
                let pointer = format_ident!("{name}_ptr", span = name.span());
                let length = format_ident!("{name}_len", span = name.span());
                let qualifier = if *mutable { quote!(mut) } else { quote!(const) };
                inputs.push(quote!(#pointer: *#qualifier #element));
                inputs.push(quote!(#length: ::core::primitive::usize));
                entries.extend([Entry::Scalar, Entry::Scalar]);
                let slice = match (raw, mutable) {
                    (true, false) => quote!(::core::ptr::slice_from_raw_parts(#pointer, #length)),
                    (true, true) => {
                        quote!(::core::ptr::slice_from_raw_parts_mut(#pointer, #length))
                    }
                    // SAFETY: whoever launches the kernel vouches for the slice,
                    // as the kernel is `unsafe`.
                    (false, false) => {
                        quote!(unsafe { ::core::slice::from_raw_parts(#pointer, #length) })
                    }
                    (false, true) => {
                        quote!(unsafe { ::core::slice::from_raw_parts_mut(#pointer, #length) })
                    }
                };
                rebuild.push(quote!(#(#attrs)* let #pattern: #ty = #slice;));
            }
            Kind::Pointer { .. } | Kind::Value | Kind::Constant { .. } => {
                inputs.push(quote!(#(#attrs)* #pattern: #ty));
                entries.push(match kind {
                    Kind::Value => Entry::Typed(owned(ty)),
                    Kind::Constant { target } => Entry::Constant(owned(target)),
                    _ => Entry::Scalar,
                });
            }
        }
    }
    let statements = &block.stmts;
    let checks = copy_checks(parameters);
    let marker = grid_constant::marker(name, &entries, &cfgs(function));
    quote! {
        #marker

        #[cfg(target_arch = "nvptx64")]
        #(#attrs)*
        #[allow(improper_ctypes_definitions, improper_gpu_kernel_arg, clippy::too_many_arguments)]
        #[unsafe(no_mangle)]
        #vis unsafe extern "ptx-kernel" fn #name #lifetimes(#(#inputs),*) {
            #checks
            #(#rebuild)*
            #(#statements)*
        }
    }
}

/// By-value parameters are copied into the launch and, for every emulated
/// thread, out of it again: they must be `Copy`.
fn copy_checks(parameters: &[Parameter]) -> TokenStream {
    let types: Vec<_> = parameters
        .iter()
        .filter_map(|parameter| match &parameter.kind {
            Kind::Value => Some(owned(&parameter.ty)),
            Kind::Constant { target } => Some(owned(target)),
            Kind::Slice { .. } | Kind::Pointer { .. } => None,
        })
        .collect();
    if types.is_empty() {
        return TokenStream::new();
    }
    let checks = types
        .iter()
        .map(|ty| quote_spanned!(ty.span()=> kernel_parameter_is_copy::<#ty>();));
    quote! {
        const _: () = {
            const fn kernel_parameter_is_copy<T: ::core::marker::Copy + 'static>() {}
            #(#checks)*
        };
    }
}

// --- host ------------------------------------------------------------------------

/// The kernel as it was written, for the emulator to call, with its shared
/// statics announced to the emulator before anything uses them.
fn host_function(function: &ItemFn) -> Result<TokenStream> {
    let ItemFn {
        attrs,
        vis,
        sig,
        block,
    } = function;
    let sig = syn::Signature {
        abi: None,
        ..sig.clone()
    };
    let mut block = (**block).clone();
    let mut announce = AnnounceShared { errors: None };
    announce.visit_block_mut(&mut block);
    if let Some(errors) = announce.errors {
        return Err(errors);
    }
    let statements = &block.stmts;
    Ok(quote! {
        #[cfg(not(target_arch = "nvptx64"))]
        #(#attrs)*
        #[allow(clippy::too_many_arguments)]
        #vis #sig {
            ::cuda_std::__private::enter_kernel();
            #(#statements)*
        }
    })
}

/// Inserts, at the start of every block that declares shared statics, a statement that announces
/// them to the emulator.
///
/// These statics then need no registration before `main`, and blocks of a kernel that has none may
/// run in parallel.
struct AnnounceShared {
    errors: Option<Error>,
}

impl VisitMut for AnnounceShared {
    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        let mut announcements = Vec::new();
        for statement in &mut block.stmts {
            let Stmt::Item(Item::Static(item)) = statement else {
                continue;
            };
            match statics::mark_announced(item) {
                Ok(true) => announcements.push(statics::announce(item)),
                Ok(false) => {}
                Err(error) => match &mut self.errors {
                    Some(errors) => errors.combine(error),
                    None => self.errors = Some(error),
                },
            }
        }
        block.stmts.splice(..0, announcements);
        visit_mut::visit_block_mut(self, block);
    }

    /// Functions inside the kernel are not part of it: their statics register
    /// themselves.
    fn visit_item_mut(&mut self, _: &mut Item) {}
}

/// The type with every lifetime replaced by `'static`, for places that have none.
fn owned(ty: &Type) -> Type {
    struct Static;
    impl VisitMut for Static {
        fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
            *lifetime = Lifetime::new("'static", lifetime.span());
        }

        fn visit_type_reference_mut(&mut self, reference: &mut syn::TypeReference) {
            if reference.lifetime.is_none() {
                reference.lifetime = Some(Lifetime::new("'static", reference.and_token.span));
            }
            visit_mut::visit_type_reference_mut(self, reference);
        }
    }
    let mut ty = ty.clone();
    Static.visit_type_mut(&mut ty);
    ty
}

/// The `cfg` attributes of the kernel, which everything that comes with it has as well.
fn cfgs(function: &ItemFn) -> Vec<&Attribute> {
    let attributes = function.attrs.iter();
    attributes
        .filter(|attr| attr.path().is_ident("cfg"))
        .collect()
}

/// The handle: a type of the kernel's name that carries its parameter list.
fn handle(
    handle: &Ident,
    function: &ItemFn,
    parameters: &[Parameter],
    bounds: Option<&Bounds>,
) -> TokenStream {
    let vis = &function.vis;
    let name = &function.sig.ident;
    let label = name.to_string();
    let cfgs = cfgs(function);
    let bounds = bounds.map(Bounds::handle_constant);

    let mut fields = Vec::new();
    let mut inputs = Vec::new();
    let mut values = Vec::new();
    let mut pack = Vec::new();
    let mut addresses = Vec::new();
    let mut call = Vec::new();
    let mut bindings = Vec::new();
    for (index, parameter) in parameters.iter().enumerate() {
        let name = &parameter.name;
        let binding = format_ident!("field{index}");
        let span = parameter.ty.span();
        match &parameter.kind {
            Kind::Slice {
                element: target,
                mutable,
            }
            | Kind::Pointer { target, mutable } => {
                let target = owned(target);
                let wrapper = if *mutable { quote!(Out) } else { quote!(In) };
                let wrapper = quote_spanned!(span=> ::cuda_std::host::#wrapper<'launch, #target>);
                fields.push(wrapper.clone());
                inputs.push(quote!(#name: impl ::core::convert::Into<#wrapper>));
                values.push(quote!(::core::convert::Into::into(#name)));
                if matches!(parameter.kind, Kind::Slice { .. }) {
                    pack.push(quote!(pack.push_address(#binding.slice_addr());));
                    pack.push(quote!(pack.push_len(#binding.len());));
                } else {
                    pack.push(quote!(pack.push_address(#binding.addr());));
                }
                let label = name.to_string();
                addresses.push(quote!(each(#label, #binding.addr());));
                let is_reference = matches!(strip(&parameter.ty), Type::Reference(_));
                let is_slice = matches!(parameter.kind, Kind::Slice { .. });
                call.push(match (is_slice, is_reference, mutable) {
                    (true, true, false) => quote!(#binding.as_slice()),
                    (true, true, true) => quote!(#binding.as_mut_slice()),
                    (true, false, false) => quote!(#binding.as_slice_ptr()),
                    (true, false, true) => quote!(#binding.as_mut_slice_ptr()),
                    (false, true, false) => quote!(&*#binding.as_ptr()),
                    (false, true, true) => quote!(&mut *#binding.as_mut_ptr()),
                    (false, false, false) => quote!(#binding.as_ptr()),
                    (false, false, true) => quote!(#binding.as_mut_ptr()),
                });
            }
            Kind::Value | Kind::Constant { .. } => {
                let is_value = matches!(parameter.kind, Kind::Value);
                let ty = owned(match &parameter.kind {
                    Kind::Constant { target } => target,
                    _ => &parameter.ty,
                });
                fields.push(quote!(#ty));
                inputs.push(quote!(#name: #ty));
                values.push(quote!(#name));
                // Copies the bits. `Copy` is required below: for a type without it, one error is
                // enough.
                pack.push(quote! {
                    // SAFETY: the type is `Copy`, or this does not compile.
                    unsafe { pack.push_bits(#binding) };
                });
                call.push(match is_value {
                    true => quote!(::core::ptr::read(#binding)),
                    false => quote!(#binding),
                });
            }
        }
        bindings.push(binding);
    }
    let checks = copy_checks(parameters);
    let doc = format!("Launch handle of the kernel `{label}`: its name and its parameter list.");
    let args_doc = format!("The arguments of one launch of `{label}`, in the kernel's order.");
    quote! {
        #[cfg(not(target_arch = "nvptx64"))]
        #(#cfgs)*
        #[doc = #doc]
        #[allow(non_camel_case_types, dead_code)]
        #vis struct #handle {}

        #[cfg(not(target_arch = "nvptx64"))]
        #(#cfgs)*
        #[allow(dead_code)]
        impl #handle {
            #[doc = #args_doc]
            #[must_use]
            #[allow(clippy::too_many_arguments, clippy::unused_unit, clippy::type_complexity)]
            #vis fn args<'launch>(
                #(#inputs),*
            ) -> <Self as ::cuda_std::host::Kernel>::Args<'launch> {
                (#(#values,)*)
            }
        }

        // SAFETY: generated from the kernel's own parameter list, which the entry
        // point of the PTX is generated from as well: same order, same types.
        #[cfg(not(target_arch = "nvptx64"))]
        #(#cfgs)*
        #[allow(clippy::unused_unit, clippy::type_complexity)]
        unsafe impl ::cuda_std::host::Kernel for #handle {
            const NAME: &'static ::core::primitive::str = #label;
            #bounds
            type Args<'launch> = (#(#fields,)*);

            #[allow(unused_variables)]
            fn pack(args: &Self::Args<'_>, pack: &mut ::cuda_std::host::ParamPack) {
                #checks
                let (#(#bindings,)*) = args;
                #(#pack)*
            }

            #[allow(unused_variables)]
            fn addresses(
                args: &Self::Args<'_>,
                each: &mut dyn ::core::ops::FnMut(
                    &'static ::core::primitive::str,
                    ::core::primitive::u64,
                ),
            ) {
                let (#(#bindings,)*) = args;
                #(#addresses)*
            }

            #[allow(unused_variables)]
            unsafe fn run_thread(args: &Self::Args<'_>) {
                let (#(#bindings,)*) = args;
                // SAFETY: the caller vouches for the kernel's contract.
                unsafe { #name(#(#call),*) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expansion(item: TokenStream) -> String {
        expand(TokenStream::new(), item, None).unwrap().to_string()
    }

    /// The expansion for the device alone.
    fn device(item: TokenStream) -> String {
        let function: ItemFn = syn::parse2(item).unwrap();
        let parameters = Parameter::parse_all(&function).unwrap();
        device_function(&function, &parameters).to_string()
    }

    fn error(item: TokenStream) -> String {
        expand(TokenStream::new(), item, None)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn slices_are_split_into_pointer_and_length() {
        let device = device(quote! { pub unsafe fn k(a: &[f32], out: &mut [u8]) { body(); } });
        assert!(
            device.contains(
                "fn k (a_ptr : * const f32 , a_len : :: core :: primitive :: usize , \
                 out_ptr : * mut u8 , out_len : :: core :: primitive :: usize)"
            ),
            "{device}"
        );
        assert!(device.contains("let a : & [f32] = unsafe { :: core :: slice :: from_raw_parts"));
        assert!(device.contains("let out : & mut [u8] = unsafe"));
        assert!(device.contains("extern \"ptx-kernel\""));
    }

    #[test]
    fn another_path_to_cuda_std_is_everywhere() {
        let item = quote! {
            #[a::cuda_std::launch_bounds(64)]
            unsafe fn k(a: &[f32], n: u32) { body(); }
        };
        let expand = |attr| expand(attr, item.clone(), None).unwrap().to_string();
        let (usual, other) = (expand(quote!()), expand(quote!(crate = a::b)));
        let usual = usual
            .replace("a :: cuda_std", "A")
            .replace(":: cuda_std", "a :: b");
        assert_eq!(usual, other.replace("a :: cuda_std", "A"));
    }

    #[test]
    fn slices_behind_groups_and_parentheses_are_seen() {
        let device = device(quote! { unsafe fn k(a: (&[f32]), b: &([i32])) {} });
        assert!(
            device.contains("a_ptr") && device.contains("b_len"),
            "{device}"
        );
    }

    #[test]
    fn patterns_survive_the_split() {
        let device = device(quote! { unsafe fn k(mut a: &[f32], _: &[u32], mut n: usize) {} });
        assert!(device.contains("let mut a : & [f32]"), "{device}");
        assert!(device.contains("arg1_ptr : * const u32"), "{device}");
        assert!(device.contains("mut n : usize"), "{device}");
    }

    #[test]
    fn pointers_and_values_pass_as_they_are() {
        let device = device(quote! {
            unsafe fn k(p: *const f32, q: *mut [u8; 32], s: &Scene, n: usize, v: Vec2) {}
        });
        assert!(
            device.contains(
                "(p : * const f32 , q : * mut [u8 ; 32] , s : & Scene , n : usize , v : Vec2)"
            ),
            "{device}"
        );
    }

    #[test]
    fn the_handle_knows_inputs_from_outputs() {
        let text =
            expansion(quote! { pub unsafe fn k(a: &[f32], p: *const u8, o: *mut f64, n: i32) {} });
        assert!(
            text.contains(
                "type Args < 'launch > = (:: cuda_std :: host :: In < 'launch , f32 > , \
                 :: cuda_std :: host :: In < 'launch , u8 > , \
                 :: cuda_std :: host :: Out < 'launch , f64 > , i32 ,)"
            ),
            "{text}"
        );
        assert_eq!(text.matches("push_address").count(), 3);
        assert_eq!(text.matches("push_len").count(), 1);
        assert_eq!(text.matches("push_bits").count(), 1);
    }

    #[test]
    fn attributes_reach_both_functions_and_the_abi_only_the_device() {
        let text = expansion(quote! {
            #[allow(clippy::missing_safety_doc)]
            #[no_mangle]
            pub unsafe extern "C" fn k() {}
        });
        assert_eq!(text.matches("clippy :: missing_safety_doc").count(), 2);
        assert_eq!(text.matches("no_mangle").count(), 1, "{text}");
        assert!(!text.contains("extern \"C\""), "{text}");
    }

    #[test]
    fn lifetimes_are_allowed() {
        let text = expansion(quote! { pub unsafe fn k<'a>(a: &'a [f32], s: &'a Scene<'a>) {} });
        assert!(
            text.contains("In < 'launch , Scene < 'static > >"),
            "{text}"
        );
    }

    #[test]
    fn upstreams_hints_are_accepted_and_others_named() {
        let item = quote! { pub unsafe fn k() {} };
        assert!(expand(quote!(grid_dim = 2d, block_dim = "1D"), item.clone(), None).is_ok());
        for (attr, expected) in [
            (quote!(grid = 2d), "unknown argument `grid`"),
            (quote!(grid_dim = 4d), "`grid_dim` is `1d`, `2d` or `3d`"),
        ] {
            let error = expand(attr, item.clone(), None).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn the_handle_makes_way_for_a_module_of_its_name() {
        let item = quote! { pub unsafe fn gemm() {} };
        for (file, expected) in [
            (None, "struct gemm { }"),
            (Some("src/lib.rs"), "struct gemm { }"),
            (Some("src/gemm.rs"), "struct gemm_handle { }"),
            (Some("src/gemm/mod.rs"), "struct gemm_handle { }"),
        ] {
            let text = expand(TokenStream::new(), item.clone(), file.map(Path::new))
                .unwrap()
                .to_string();
            assert!(text.contains(expected), "{file:?}: {text}");
            assert!(
                text.contains("str = \"gemm\""),
                "the entry point keeps its name: {text}"
            );
        }
        let text = expand(quote!(handle = Gemm), item, None)
            .unwrap()
            .to_string();
        assert!(text.contains("struct Gemm { }"), "{text}");
    }

    #[test]
    fn what_no_kernel_can_be_is_refused() {
        for (item, expected) in [
            (quote! { async unsafe fn k() {} }, "cannot be `async`"),
            (quote! { const unsafe fn k() {} }, "cannot be `const`"),
            (quote! { fn k() {} }, "must be an `unsafe fn`"),
            (quote! { unsafe fn k<T>() {} }, "cannot be generic"),
            (
                quote! { unsafe fn k<const N: usize>() {} },
                "cannot be generic",
            ),
            (quote! { unsafe fn k(x: impl Copy) {} }, "cannot be generic"),
            (quote! { unsafe fn k() -> u32 { 0 } }, "returns nothing"),
            (quote! { unsafe fn k(&self) {} }, "cannot be a method"),
            (quote! { unsafe fn k(s: &str) {} }, "cannot take `str`"),
            (
                quote! { unsafe fn k(s: &dyn Fn()) {} },
                "cannot take a trait object",
            ),
            (quote! { struct K; }, "goes on a function"),
        ] {
            let message = error(item);
            assert!(
                message.contains(expected),
                "expected {expected:?}, got {message:?}"
            );
        }
        assert!(expand(TokenStream::new(), quote! { unsafe fn k() -> () {} }, None).is_ok());
    }

    #[test]
    fn every_mistake_is_reported_at_once() {
        let error = expand(
            TokenStream::new(),
            quote! { async fn k<T>() -> u32 { 0 } },
            None,
        )
        .unwrap_err();
        assert_eq!(error.into_iter().count(), 4);
    }
}
