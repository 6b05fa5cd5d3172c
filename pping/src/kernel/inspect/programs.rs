//! The names of loaded programs, pping's own and others'.

use std::collections::HashMap;

/// Names of programs by their ids, as far as the kernel reports them.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<u32, String>);

impl Names {
    /// Asks for the names of all programs. Without `CAP_SYS_ADMIN` the kernel reports none.
    pub(crate) fn of_all() -> Self {
        // A program may be gone before its information is read.
        let programs = aya::programs::loaded_programs().filter_map(Result::ok);
        let named = programs.filter_map(|it| Some((it.id(), it.name_as_str()?.to_owned())));
        Self(named.filter(|(_, name)| !name.is_empty()).collect())
    }

    /// The name of a program, if it is known.
    pub(crate) fn get(&self, id: u32) -> Option<&str> {
        self.0.get(&id).map(String::as_str)
    }
}

/// The name of one program, if it is known.
pub(crate) fn name(id: u32) -> Option<String> {
    let program = aya::programs::loaded_programs().flatten().find(|program| program.id() == id)?;
    program.name_as_str().map(ToOwned::to_owned)
}
