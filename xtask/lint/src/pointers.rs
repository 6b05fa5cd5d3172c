//! Checks that no safe function takes a pointer, which safe code could make up, or returns `&'static mut`, which safe code could
//! ask for twice. clippy checks the former for exported functions only (`not_unsafe_ptr_arg_deref`).

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use pping_chores::environment;
use syn::{
    FnArg, ReturnType, Signature, Type,
    visit::{self, Visit},
};

/// The sources where memory is shared between kernel programs and agent.
const SOURCES: [&str; 3] = ["pping-common/src", "pping-ebpf/src", "pping/src"];

/// Functions that return a pointer as it came, and do not look behind it.
const MOVING: &str = "pping-ebpf/src/barrier.rs";

/// Fails if there is such a function.
pub(super) fn check() -> Result<()> {
    let mut complaints = Vec::new();
    for file in SOURCES.iter().flat_map(|folder| files(&environment::repository().join(folder))) {
        if !file.ends_with(MOVING) {
            let text =
                fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let found = unsound(&text).with_context(|| format!("cannot parse {}", file.display()))?;
            complaints.extend(found.into_iter().map(|name| format!("{}: {name}", file.display())));
        }
    }
    ensure!(
        complaints.is_empty(),
        "these functions must be `unsafe`, or take `Shared`:\n{}",
        complaints.join("\n")
    );
    Ok(())
}

/// Returns all Rust files in a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.path() {
            path if path.is_dir() => files(&path),
            path if path.extension().is_some_and(|it| it == "rs") => vec![path],
            _ => Vec::new(),
        })
        .collect()
}

/// Returns the names of safe functions that take pointers or return `&'static mut`.
fn unsound(text: &str) -> Result<Vec<String>> {
    let mut found = Found::default();
    found.visit_file(&syn::parse_file(text)?);
    Ok(found.0)
}

#[derive(Default)]
struct Found(Vec<String>);

impl<'ast> Visit<'ast> for Found {
    fn visit_signature(&mut self, signature: &'ast Signature) {
        let takes_pointer = signature.inputs.iter().any(|input| match input {
            FnArg::Typed(input) => has_pointer(&input.ty),
            FnArg::Receiver(_) => false,
        });
        let returns_static =
            matches!(&signature.output, ReturnType::Type(_, output) if has_static_mut(output));
        if signature.unsafety.is_none() && (takes_pointer || returns_static) {
            self.0.push(signature.ident.to_string());
        }
        visit::visit_signature(self, signature);
    }
}

fn has_pointer(ty: &Type) -> bool {
    struct Pointers(bool);
    impl<'ast> Visit<'ast> for Pointers {
        fn visit_type_ptr(&mut self, _: &'ast syn::TypePtr) {
            self.0 = true;
        }
        // What a callback takes is its own affair.
        fn visit_type_bare_fn(&mut self, _: &'ast syn::TypeBareFn) {}
    }
    let mut pointers = Pointers(false);
    pointers.visit_type(ty);
    pointers.0
}

fn has_static_mut(ty: &Type) -> bool {
    struct References(bool);
    impl<'ast> Visit<'ast> for References {
        fn visit_type_reference(&mut self, reference: &'ast syn::TypeReference) {
            let is_static = reference.lifetime.as_ref().is_some_and(|lifetime| lifetime.ident == "static");
            self.0 |= reference.mutability.is_some() && is_static;
            visit::visit_type_reference(self, reference);
        }
    }
    let mut references = References(false);
    references.visit_type(ty);
    references.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safe_functions_with_pointers_are_found() {
        let text = "
            fn direct(a: u8, b: *mut u8) {}
            fn inside(option: Option<*const u8>) {}
            fn lent(pointer: &*mut u8) {}
            fn forever() -> Option<&'static mut u8> { None }
            impl S { pub(crate) const fn method(self, pointer: *const u8) {} }
            trait T { fn of_trait(pointer: *const u8); }
            unsafe fn fine(pointer: *mut u8) -> &'static mut u8 { loop {} }
            fn callback(visit: unsafe extern \"C\" fn(*mut u8)) {}
            fn fine_too(number: &'static u8) -> *mut u8 { loop {} }
        ";
        assert_eq!(unsound(text).unwrap(), ["direct", "inside", "lent", "forever", "method", "of_trait"]);
    }
}
