//! Removes what only debuggers read from the compiled programs.

use std::{error::Error, fs, path::Path};

use object::{build::elf, elf::SHT_STRTAB};

/// Copies programs without the sections that only debuggers read, which are most of a program. The kernel's own tools
/// get types and lines from BTF.
pub(crate) fn strip(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    let compiled = fs::read(from)?;
    let mut builder = elf::Builder::read(compiled.as_slice())?;
    for section in &mut builder.sections {
        section.delete =
            [".debug_", ".rel.debug_"].iter().any(|prefix| section.name.starts_with(prefix.as_bytes()));
    }
    builder.delete_orphans();
    // LLVM has the names of sections and symbols in the same string table.
    let names = builder.sections.add();
    names.name = ".shstrtab".into();
    names.sh_type = SHT_STRTAB;
    names.data = elf::SectionData::SectionString;
    let mut stripped = Vec::new();
    builder.write(&mut stripped)?;
    Ok(fs::write(to, stripped)?)
}
