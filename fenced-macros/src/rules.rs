//! What `LockPath` refuses, as far as a template's fixed text shows it.

const MAX_BYTES: usize = 1_000;

/// Checks the parts of a template in order; `None` stands for a hole.
pub(crate) fn check<'a>(parts: impl Iterator<Item = Option<&'a str>>) -> Result<(), String> {
    let parts: Vec<_> = parts.collect();
    let fixed: usize = parts.iter().flatten().map(|text| text.len()).sum();
    if fixed > MAX_BYTES {
        return Err(format!(
            "the lock's fixed text has {fixed} bytes, more than the {MAX_BYTES} that a whole path may have: shorten it"
        ));
    }
    if let Some(refused) = parts
        .iter()
        .flatten()
        .find_map(|text| text.chars().find(|c| is_refused(*c)))
    {
        return Err(format!(
            "the character {refused:?} cannot stand in a lock path, since ZooKeeper refuses it: leave it out, or let it come through a hole, which escapes it"
        ));
    }
    if !parts
        .first()
        .is_some_and(|first| first.is_some_and(|text| text.starts_with('/')))
    {
        return Err("a lock path is absolute: start it with `/`, as in \"/locks/<id>\"".to_owned());
    }
    segments(&parts).iter().skip(1).try_for_each(Segment::check)
}

#[derive(Default)]
struct Segment {
    text: String,
    holes: usize,
}

fn segments(parts: &[Option<&str>]) -> Vec<Segment> {
    let mut segments = vec![Segment::default()];
    for part in parts {
        let Some(text) = part else {
            segments.last_mut().expect("never empty").holes += 1;
            continue;
        };
        let mut texts = text.split('/');
        segments.last_mut().expect("never empty").text += texts.next().unwrap_or_default();
        segments.extend(texts.map(|text| Segment {
            text: text.to_owned(),
            holes: 0,
        }));
    }
    segments
}

impl Segment {
    fn check(&self) -> Result<(), String> {
        let Self { text, holes } = self;
        Err(match (holes, text.as_str()) {
            (2.., _) => "two holes in one segment can give one path to different values: put a `/` between them".to_owned(),
            (1, _) => return Ok(()),
            (_, "") => "the lock path has an empty segment: write something between and after its `/`".to_owned(),
            (_, "." | "..") => format!("the segment `{text}` would mean another directory: name the segment in full"),
            _ if names_contender(text) => format!(
                "the segment `{text}` ends like a contender's node (`lock-0000000001`), and would be taken for one: rename it"
            ),
            _ => return Ok(()),
        })
    }
}

fn is_refused(c: char) -> bool {
    matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
}

fn names_contender(segment: &str) -> bool {
    const KINDS: [&str; 6] = [
        "lock-",
        "latch-",
        "__lock__",
        "__rlock__",
        "__READ__",
        "__WRIT__",
    ];
    let bare = segment.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = segment.len() - bare.len();
    let ends_in = |bare: &str| KINDS.iter().any(|kind| bare.ends_with(kind));
    let negative = bare.strip_suffix('-').is_some_and(ends_in);
    (digits == 10 && ends_in(bare)) || (matches!(digits, 9 | 10) && negative)
}

#[cfg(test)]
mod tests {
    use fenced_core::LockPath;

    use super::check;

    #[test]
    fn agree_with_lock_path() {
        let long = format!("/{}", "a".repeat(1_000));
        let longest = &long[..1_000];
        for path in [
            "",
            "a",
            "/",
            "//",
            "/a/",
            "/a//b",
            "/a",
            "/a/b",
            "/.",
            "/a/..",
            "/a/...",
            "/a/.b",
            "/a\n",
            "/\u{7f}",
            "/\u{a0}",
            "/\u{e000}",
            "/\u{ffef}",
            "/\u{fff0}",
            "/🦀",
            "/ä",
            "/lock-1",
            "/lock-0000000001",
            "/x-latch--123456789/b",
            "/lock-00000000012",
            "/a__WRIT__0000000001",
            "/%2F",
            &long,
            longest,
        ] {
            let ours = check([Some(path)].into_iter()).is_ok();
            assert_eq!(ours, LockPath::new(path).is_ok(), "{path:?}");
        }
    }
}
