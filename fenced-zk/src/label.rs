//! Who holds or awaits a lock: a short text kept as the data of the contender's node.

/// The longest label, in bytes.
pub(crate) const MAX_BYTES: usize = 256;

/// The part of a text that may be shown: no control characters, cut where it gets too long.
pub(crate) fn bounded(text: &str, bytes: usize) -> String {
    let mut label = String::with_capacity(text.len().min(bytes));
    for c in text.chars().filter(|c| is_shown(*c)) {
        if label.len() + c.len_utf8() > bytes {
            break;
        }
        label.push(c);
    }
    label
}

/// Neither a control character nor one that turns the direction of what stands around it.
fn is_shown(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !c.is_control() && !turns
}

/// The text in a node of others, which may hold anything.
pub(crate) fn read(data: &[u8], bytes: usize) -> Option<String> {
    let start = &data[..data.len().min(2 * bytes)];
    let label = bounded(&String::from_utf8_lossy(start), bytes);
    (!label.is_empty()).then_some(label)
}

/// The label of one request of this owner.
pub(crate) fn of(owner: &str, request: Option<&str>) -> String {
    // Neither is copied as a whole, however long it is.
    let owner = bounded(owner, MAX_BYTES);
    match request {
        Some(label) => bounded(&format!("{owner} {}", bounded(label, MAX_BYTES)), MAX_BYTES),
        None => owner,
    }
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
        let read = |data: &[u8]| read(data, MAX_BYTES);
        assert_eq!(read(b""), None);
        assert_eq!(read(b"\x1b[2Ja\nb").as_deref(), Some("[2Jab"));
        assert_eq!(read("a\u{202e}b".as_bytes()).as_deref(), Some("ab"));
        let long = "ä".repeat(10_000);
        let kept = read(long.as_bytes()).map(|label| label.len());
        assert_eq!(kept, Some(MAX_BYTES));
        assert!(read(&vec![0xff; 1_000_000]).is_some_and(|label| label.len() <= MAX_BYTES));
        let endless = "x".repeat(1_000_000);
        assert_eq!(of(&endless, Some(&endless)).len(), MAX_BYTES);
    }
}
