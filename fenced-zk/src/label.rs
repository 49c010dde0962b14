//! Who holds or awaits a lock: a short text kept as the data of the contender's node.

/// The longest label, in bytes.
pub(crate) const MAX_BYTES: usize = 256;

/// The part of a text that may be shown: no control characters, cut where it gets too long.
pub(crate) fn bounded(text: &str) -> String {
    let mut label = String::with_capacity(text.len().min(MAX_BYTES));
    for c in text.chars().filter(|c| !c.is_control()) {
        if label.len() + c.len_utf8() > MAX_BYTES {
            break;
        }
        label.push(c);
    }
    label
}

/// The label in another contender's node, which may hold anything.
pub(crate) fn read(data: &[u8]) -> Option<String> {
    let start = &data[..data.len().min(2 * MAX_BYTES)];
    let label = bounded(&String::from_utf8_lossy(start));
    (!label.is_empty()).then_some(label)
}

/// The label of one request of this owner.
pub(crate) fn of(owner: &str, request: Option<&str>) -> String {
    request.map_or_else(
        || bounded(owner),
        |label| bounded(&format!("{owner} {label}")),
    )
}

/// The owner when none was named: this program and its process.
pub(crate) fn default_owner() -> String {
    let program = std::env::current_exe().ok();
    let name = program.as_deref().and_then(|path| path.file_stem());
    let name = name.map_or_else(|| "process".into(), |name| name.to_string_lossy());
    format!("{name}/{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_data_is_cut_and_cleaned() {
        assert_eq!(read(b""), None);
        assert_eq!(read(b"\x1b[2Ja\nb").as_deref(), Some("[2Jab"));
        let long = "ä".repeat(10_000);
        assert_eq!(
            read(long.as_bytes()).map(|label| label.len()),
            Some(MAX_BYTES)
        );
        assert!(read(&vec![0xff; 1_000_000]).is_some_and(|label| label.len() <= MAX_BYTES));
    }
}
