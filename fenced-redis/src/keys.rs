use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;

use fenced_core::{Fence, Request, SinkError};

use crate::slot;

/// The longest name of a resource, in bytes.
const MAX_RESOURCE_BYTES: usize = 1_024;
/// What the keys of the sink itself begin with.
const OURS: &str = "fenced:";

pub(crate) type TagBy = dyn Fn(&str) -> String + Send + Sync;

/// Which hash tag the keys of a resource have, so that a cluster keeps them on one node.
#[derive(Clone)]
pub(crate) enum Tags {
    /// None: there is one server.
    Without,
    One(Arc<str>),
    By(Arc<TagBy>),
}

/// Where the fence of a resource is, and what else has to be there.
pub(crate) struct Place<'a> {
    tag: Option<Cow<'a, str>>,
    pub(crate) fences: String,
}

impl Tags {
    /// The place of a fence, which may come from another service.
    pub(crate) fn place(&self, fence: &Fence) -> Result<Place<'_>, SinkError> {
        self.place_of(&fence.resource)
    }

    pub(crate) fn place_of(&self, resource: &str) -> Result<Place<'_>, SinkError> {
        check_resource(resource)?;
        match self {
            Self::By(tag_by) => {
                let tag = tag_by(resource);
                check_tag(&tag)?;
                let fences = fences_in_slot(slot::of(tag.as_bytes()));
                let tag = Some(tag.into());
                Ok(Place { tag, fences })
            }
            _ => self.only_place(),
        }
    }

    /// The place of a request that does not say under which fence it was sent.
    pub(crate) fn place_of_request(&self, request: &Request) -> Result<Place<'_>, SinkError> {
        match (request.fence(), self) {
            (Some(fence), _) => self.place(fence),
            (None, Self::By(_)) => Err(SinkError::InvalidRequest {
                id: request.id().to_owned(),
                reason: "this sink keeps requests beside their resources, so that it must say \
                    under which fence it was sent (`Request::sent_under`)"
                    .to_owned(),
            }),
            (None, _) => self.only_place(),
        }
    }

    fn only_place(&self) -> Result<Place<'_>, SinkError> {
        let tag = match self {
            Self::One(tag) => Some(Cow::Borrowed(&**tag)),
            _ => None,
        };
        tag.as_deref().map_or(Ok(()), check_tag)?;
        let fences = ours(tag.as_deref(), "fences");
        Ok(Place { tag, fences })
    }

    /// All keys that hold fences.
    pub(crate) fn all_fences(&self) -> Result<Vec<String>, SinkError> {
        match self {
            Self::By(_) => Ok((0..slot::COUNT).map(fences_in_slot).collect()),
            _ => Ok(vec![self.only_place()?.fences]),
        }
    }

    pub(crate) fn are_missing(&self) -> bool {
        matches!(self, Self::Without)
    }
}

impl Place<'_> {
    pub(crate) fn request(&self, id: &str) -> String {
        ours(self.tag.as_deref(), format_args!("request:{id}"))
    }

    pub(crate) fn resets(&self) -> String {
        ours(self.tag.as_deref(), "resets")
    }

    /// Whether a script that checks the fence may use this key too.
    pub(crate) fn check(&self, key: &[u8]) -> Result<(), SinkError> {
        if key.starts_with(OURS.as_bytes()) {
            return Err(Misplaced::Ours(shown(key)).into());
        }
        match &self.tag {
            Some(tag) if slot::tag(key) != tag.as_bytes() => {
                let (key, tag) = (shown(key), tag.clone().into_owned());
                Err(Misplaced::Untagged { key, tag }.into())
            }
            _ => Ok(()),
        }
    }
}

fn ours(tag: Option<&str>, name: impl Display) -> String {
    match tag {
        Some(tag) => format!("{OURS}{{{tag}}}:{name}"),
        None => format!("{OURS}{name}"),
    }
}

/// One for each slot, whatever the tags there: so they can be counted, and collected.
fn fences_in_slot(slot: u16) -> String {
    ours(Some(&slot::number_in(slot).to_string()), "fences")
}

/// A key as an error may show it.
pub(crate) fn shown(key: &[u8]) -> String {
    key.escape_ascii().take(80).map(char::from).collect()
}

#[derive(Debug, thiserror::Error)]
enum Misplaced {
    #[error("`{resource}` cannot name a resource: {reason}")]
    Resource {
        resource: String,
        reason: &'static str,
    },
    #[error("`{tag}` cannot be a hash tag, since {reason}: choose another one")]
    Tag { tag: String, reason: &'static str },
    #[error(
        "the key `{key}` is not tagged `{{{tag}}}`, as what is written beside its fence must be: name it, for example, `{{{tag}}}:count`"
    )]
    Untagged { key: String, tag: String },
    #[error(
        "the key `{0}` is one of the sink itself, which begin with `{OURS}`: choose another one"
    )]
    Ours(String),
}

impl From<Misplaced> for SinkError {
    fn from(misplaced: Misplaced) -> Self {
        Self::backend(misplaced)
    }
}

fn check_resource(resource: &str) -> Result<(), SinkError> {
    let reason = match resource {
        "" => "it is empty",
        name if name.len() > MAX_RESOURCE_BYTES => "it is longer than 1024 bytes",
        name if name.chars().any(char::is_control) => "it holds a control character",
        _ => return Ok(()),
    };
    let resource = resource.escape_debug().take(80).collect();
    Err(Misplaced::Resource { resource, reason }.into())
}

fn check_tag(tag: &str) -> Result<(), SinkError> {
    let reason = match tag {
        "" => "it is empty",
        tag if tag.contains(['{', '}']) => "it holds a brace",
        tag if tag.len() > MAX_RESOURCE_BYTES => "it is longer than 1024 bytes",
        _ => return Ok(()),
    };
    let tag = tag.escape_debug().take(80).collect();
    Err(Misplaced::Tag { tag, reason }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(tag: &str) -> Tags {
        Tags::One(tag.into())
    }

    #[test]
    fn a_key_must_have_the_tag() {
        let tags = tags("4711");
        let place = tags.place_of("/locks/4711").unwrap();
        for good in [
            "4711",
            "{4711}",
            "{4711}:count",
            "stock:{4711}",
            "a{4711}{12}",
        ] {
            place.check(good.as_bytes()).unwrap();
        }
        let bad = [
            "",
            "{4711",
            "{}{4711}",
            "{12}{4711}",
            "{47112}",
            "fenced:{4711}:x",
        ];
        for bad in bad {
            assert!(place.check(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn without_tags_a_key_must_only_not_be_ours() {
        let place = Tags::Without.place_of("/locks/4711").unwrap();
        place.check(b"stock:{4711}").unwrap();
        place.check(b"\xff\0").unwrap();
        assert!(place.check(b"fenced:fences").is_err());
    }

    #[test]
    fn what_is_no_tag_is_refused() {
        for bad in ["", "{", "a}b", &"x".repeat(2_000)] {
            assert!(tags(bad).place_of("/a").is_err(), "{bad}");
            let bad = bad.to_owned();
            assert!(
                Tags::By(Arc::new(move |_| bad.clone()))
                    .place_of("/a")
                    .is_err()
            );
        }
    }

    #[test]
    fn all_keys_of_a_resource_are_in_one_slot() {
        let tags = Tags::By(Arc::new(|resource| resource.replace('/', "-")));
        let all = tags.all_fences().unwrap();
        for i in 0..1_000 {
            let place = tags.place_of(&format!("/locks/{i}")).unwrap();
            let slot = slot::of(place.fences.as_bytes());
            assert_eq!(slot::of(place.request("r1").as_bytes()), slot);
            assert_eq!(slot::of(place.resets().as_bytes()), slot);
            assert_eq!(slot::of(format!("count:{{-locks-{i}}}").as_bytes()), slot);
            assert!(all.contains(&place.fences));
        }
        assert_eq!(all.len(), 16_384);
    }
}
