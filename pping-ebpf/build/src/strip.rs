//! What of the compiled programs is worth carrying along.

use std::{error::Error, fs, path::Path};

use object::{build::elf, elf::SHT_STRTAB};

/// Copies programs without what only debuggers read, which is most of it. The kernel's own tools have the types and the lines
/// from BTF.
pub(crate) fn strip(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    let compiled = fs::read(from)?;
    let mut builder = elf::Builder::read(compiled.as_slice())?;
    for section in &mut builder.sections {
        section.delete =
            [".debug_", ".rel.debug_"].iter().any(|prefix| section.name.starts_with(prefix.as_bytes()));
    }
    builder.delete_orphans();
    // LLVM names sections and symbols in the same one.
    let names = builder.sections.add();
    names.name = ".shstrtab".into();
    names.sh_type = SHT_STRTAB;
    names.data = elf::SectionData::SectionString;
    let mut stripped = Vec::new();
    builder.write(&mut stripped)?;
    Ok(fs::write(to, stripped)?)
}
