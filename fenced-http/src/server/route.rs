use std::fmt;
use std::sync::Arc;

use fenced_core::LockPath;
use http::request::Parts;

use crate::resource;

/// Says which resource a request is for: never the request's header alone, or a token for one
/// resource would open all others.
///
/// ```
/// use fenced_http::Route;
///
/// // The lock that `#[fenced(lock = "/locks/valves/<id>")]` takes, with the same escaping.
/// let route = Route::new("/valves/{id}/commands", "/locks/valves/<id>");
/// # drop(route);
/// let by_hand = Route::by(|_request| Some("/locks/the-only-valve".to_owned()));
/// ```
#[derive(Clone)]
pub struct Route(Arc<Naming>);

type Naming = dyn Fn(&Parts) -> Option<String> + Send + Sync;

impl Route {
    /// Requests to `path` are for the lock `template`, whose holes are filled from the segments
    /// of the same names. The path is that which the layer sees: without the prefix of a router
    /// around it.
    ///
    /// # Panics
    /// If the template has a hole that the path has not.
    #[must_use]
    pub fn new(path: &'static str, template: &'static str) -> Self {
        for hole in template.split('<').skip(1) {
            let name = hole.split('>').next().unwrap_or_default();
            let is_there = path
                .split('/')
                .any(|segment| name_of(segment) == Some(name));
            assert!(
                is_there,
                "`{template}` has a hole `<{name}>`, and `{path}` no `{{{name}}}`"
            );
        }
        Self::by(move |parts| {
            let segments = capture(path, parts.uri.path())?;
            let value = |hole: &str| {
                let found = segments.iter().find(|(name, _)| *name == hole)?;
                resource::decode(found.1)
            };
            let path = LockPath::fill(template, value).ok()?;
            Some(path.as_str().to_owned())
        })
    }

    /// Requests are for the resource that `name` tells; none is answered with 404.
    pub fn by(name: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(name))
    }

    pub(crate) fn resource(&self, parts: &Parts) -> Option<String> {
        (self.0)(parts).filter(|name| resource::check(name).is_ok())
    }
}

/// The name of a segment `{name}`.
fn name_of(segment: &str) -> Option<&str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

/// The segments that `pattern` names, as they stand in `path`; none if it is another path.
fn capture<'p>(pattern: &'static str, path: &'p str) -> Option<Vec<(&'static str, &'p str)>> {
    let mut captured = Vec::new();
    let (mut patterns, mut segments) = (pattern.split('/'), path.split('/'));
    loop {
        match (patterns.next(), segments.next()) {
            (None, None) => return Some(captured),
            (Some(pattern), Some(segment)) => match name_of(pattern) {
                Some(name) => captured.push((name, segment)),
                None if pattern == segment => {}
                None => return None,
            },
            _ => return None,
        }
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Route")
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn resource(path: &str) -> Option<String> {
        let route = Route::new("/valves/{id}/commands", "/locks/valves/<id>");
        let (parts, ()) = Request::get(path).body(()).unwrap().into_parts();
        route.resource(&parts)
    }

    #[test]
    fn a_hole_is_filled_as_the_attribute_does() {
        let of = |path| resource(path).unwrap();
        assert_eq!(of("/valves/7/commands"), "/locks/valves/7");
        assert_eq!(of("/valves/7/commands?x=1"), "/locks/valves/7");
        assert_eq!(of("/valves/a%2Fb/commands"), "/locks/valves/a%2Fb");
        assert_eq!(of("/valves/%2e%2E/commands"), "/locks/valves/%2E%2E");
        assert_eq!(of("/valves/%C3%A4/commands"), "/locks/valves/ä");
    }

    #[test]
    fn what_names_no_resource_has_none() {
        for path in [
            "/valves//commands",
            "/valves/7",
            "/valves/7/commands/",
            "/valves/%ff/commands",
            "/valves/%/commands",
            "/",
            "//valves/7/commands",
        ] {
            assert_eq!(resource(path), None, "{path}");
        }
        let long = format!("/valves/{}/commands", "x".repeat(1_000));
        assert_eq!(resource(&long), None);
    }

    #[test]
    #[should_panic(expected = "no `{sku}`")]
    fn a_hole_without_a_segment_is_told_at_once() {
        let _ = Route::new("/valves/{id}", "/locks/<sku>");
    }
}
