//! Items of RFC 9651, as far as our headers need them.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// The longest header that is read.
pub(crate) const MAX_BYTES: usize = 8_192;
/// An integer of a structured field has no more digits.
const MAX_DIGITS: usize = 15;

/// What is wrong with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub(crate) &'static str);

/// A bare item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bare {
    /// A String or a Display String.
    Text(String),
    Token(String),
    Bytes(Vec<u8>),
    Integer(i64),
    Date(i64),
    Boolean(bool),
    /// Read, so that an unknown parameter may hold one.
    Decimal,
}

/// An item with its parameters, of which no two have one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) value: Bare,
    parameters: Vec<(String, Bare)>,
}

impl Item {
    pub(crate) fn new(value: Bare) -> Self {
        let parameters = Vec::new();
        Self { value, parameters }
    }

    pub(crate) fn with(mut self, name: &str, value: Bare) -> Self {
        self.parameters.push((name.to_owned(), value));
        self
    }

    pub(crate) fn parse(input: &[u8]) -> Result<Self, Malformed> {
        if input.len() > MAX_BYTES {
            return Err(Malformed("it is too long"));
        }
        let mut rest = Rest(input);
        rest.skip_spaces();
        let value = rest.bare()?;
        let parameters = rest.parameters()?;
        rest.skip_spaces();
        match rest.0 {
            [] => Ok(Self { value, parameters }),
            _ => Err(Malformed("something follows the value")),
        }
    }

    /// Takes a parameter out.
    pub(crate) fn take(&mut self, name: &str) -> Option<Bare> {
        let at = self.parameters.iter().position(|(key, _)| key == name)?;
        Some(self.parameters.swap_remove(at).1)
    }

    pub(crate) fn write(&self) -> String {
        let mut text = String::with_capacity(64);
        write_bare(&mut text, &self.value);
        for (name, value) in &self.parameters {
            let _ = write!(text, ";{name}");
            if *value != Bare::Boolean(true) {
                text.push('=');
                write_bare(&mut text, value);
            }
        }
        text
    }
}

/// A header's value as a dictionary with the one member that is looked for.
///
/// Other members are skipped: `Content-Digest` may hold digests of other algorithms.
pub(crate) fn member(input: &[u8], wanted: &str) -> Result<Option<Bare>, Malformed> {
    if input.len() > MAX_BYTES {
        return Err(Malformed("it is too long"));
    }
    let mut rest = Rest(input);
    let mut found = None;
    loop {
        rest.skip_spaces();
        let name = rest.key()?;
        let value = rest.value_of_key()?;
        rest.parameters()?;
        if name == wanted && found.replace(value).is_some() {
            return Err(Malformed("a member is there twice"));
        }
        rest.skip_spaces();
        match rest.next() {
            None => return Ok(found),
            Some(b',') => {}
            Some(_) => return Err(Malformed("something follows a member")),
        }
    }
}

fn write_bare(to: &mut String, value: &Bare) {
    let _ = match value {
        Bare::Text(text) => {
            write_text(to, text);
            Ok(())
        }
        Bare::Token(token) => write!(to, "{token}"),
        Bare::Bytes(bytes) => write!(to, ":{}:", BASE64.encode(bytes)),
        Bare::Integer(number) => write!(to, "{number}"),
        Bare::Date(seconds) => write!(to, "@{seconds}"),
        Bare::Boolean(is) => write!(to, "?{}", u8::from(*is)),
        Bare::Decimal => unreachable!("is only read"),
    };
}

/// As a String where that can hold it, else as a Display String.
fn write_text(to: &mut String, text: &str) {
    let is_plain = |b: u8| matches!(b, 0x20..=0x7e);
    if text.bytes().all(is_plain) {
        to.push('"');
        for c in text.chars() {
            if matches!(c, '"' | '\\') {
                to.push('\\');
            }
            to.push(c);
        }
    } else {
        to.push_str("%\"");
        for b in text.bytes() {
            if is_plain(b) && !matches!(b, b'%' | b'"') {
                to.push(char::from(b));
            } else {
                let _ = write!(to, "%{b:02x}");
            }
        }
    }
    to.push('"');
}

/// What is still to be read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn skip_spaces(&mut self) {
        while let [b' ' | b'\t', rest @ ..] = self.0 {
            self.0 = rest;
        }
    }

    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|b| !wanted(*b));
        let (taken, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        taken
    }

    fn parameters(&mut self) -> Result<Vec<(String, Bare)>, Malformed> {
        let mut parameters: Vec<(String, Bare)> = Vec::new();
        while let [b';', rest @ ..] = self.0 {
            self.0 = rest;
            self.skip_spaces();
            let name = self.key()?;
            if parameters.iter().any(|(known, _)| *known == name) {
                return Err(Malformed("a parameter is there twice"));
            }
            let value = self.value_of_key()?;
            parameters.push((name, value));
        }
        Ok(parameters)
    }

    fn key(&mut self) -> Result<String, Malformed> {
        if !matches!(self.0.first(), Some(b'a'..=b'z' | b'*')) {
            return Err(Malformed("a name is missing"));
        }
        let key =
            self.take_while(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'*'));
        Ok(String::from_utf8_lossy(key).into_owned())
    }

    fn value_of_key(&mut self) -> Result<Bare, Malformed> {
        if let [b'=', rest @ ..] = self.0 {
            self.0 = rest;
            self.bare()
        } else {
            Ok(Bare::Boolean(true))
        }
    }

    fn bare(&mut self) -> Result<Bare, Malformed> {
        match self.0.first() {
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'*') => Ok(self.token()),
            Some(_) => match self.next() {
                Some(b'"') => self.string(),
                Some(b'%') => self.display_string(),
                Some(b':') => self.bytes(),
                Some(b'?') => self.boolean(),
                Some(b'@') => match self.number()? {
                    Bare::Integer(seconds) => Ok(Bare::Date(seconds)),
                    _ => Err(Malformed("a date is no whole number")),
                },
                _ => Err(Malformed("it starts with no value")),
            },
            None => Err(Malformed("a value is missing")),
        }
    }

    fn number(&mut self) -> Result<Bare, Malformed> {
        let is_negative = self.0.first() == Some(&b'-');
        if is_negative {
            self.next();
        }
        let digits = self.take_while(|b| b.is_ascii_digit());
        if digits.is_empty() || digits.len() > MAX_DIGITS {
            return Err(Malformed("a number has no digits, or too many"));
        }
        if let [b'.', rest @ ..] = self.0 {
            self.0 = rest;
            let fraction = self.take_while(|b| b.is_ascii_digit());
            return match (digits.len(), fraction.len()) {
                (..=12, 1..=3) => Ok(Bare::Decimal),
                _ => Err(Malformed("a decimal has too many digits, or too few")),
            };
        }
        let number = digits
            .iter()
            .fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
        Ok(Bare::Integer(if is_negative { -number } else { number }))
    }

    fn token(&mut self) -> Bare {
        let token =
            self.take_while(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&b));
        Bare::Token(String::from_utf8_lossy(token).into_owned())
    }

    fn string(&mut self) -> Result<Bare, Malformed> {
        let mut text = String::new();
        loop {
            match self.next() {
                Some(b'"') => return Ok(Bare::Text(text)),
                Some(b'\\') => match self.next() {
                    Some(escaped @ (b'"' | b'\\')) => text.push(char::from(escaped)),
                    _ => return Err(Malformed("a string escapes what needs no escape")),
                },
                Some(plain @ 0x20..=0x7e) => text.push(char::from(plain)),
                Some(_) => return Err(Malformed("a string holds a character it may not")),
                None => return Err(Malformed("a string does not end")),
            }
        }
    }

    fn display_string(&mut self) -> Result<Bare, Malformed> {
        if self.next() != Some(b'"') {
            return Err(Malformed("a display string does not start"));
        }
        let mut bytes = Vec::new();
        loop {
            match self.next() {
                Some(b'"') => break,
                Some(b'%') => bytes.push(self.hex()? << 4 | self.hex()?),
                Some(plain @ 0x20..=0x7e) => bytes.push(plain),
                Some(_) => return Err(Malformed("a string holds a character it may not")),
                None => return Err(Malformed("a string does not end")),
            }
        }
        let text = String::from_utf8(bytes);
        text.map(Bare::Text)
            .map_err(|_| Malformed("a display string is no UTF-8"))
    }

    fn hex(&mut self) -> Result<u8, Malformed> {
        match self.next() {
            Some(digit @ b'0'..=b'9') => Ok(digit - b'0'),
            Some(digit @ b'a'..=b'f') => Ok(digit - b'a' + 10),
            _ => Err(Malformed("an escape is not two digits in lower case")),
        }
    }

    fn bytes(&mut self) -> Result<Bare, Malformed> {
        let encoded = self.take_while(|b| b != b':');
        match self.next() {
            Some(_) => {}
            None => return Err(Malformed("a byte sequence does not end")),
        }
        let decoded = BASE64.decode(encoded);
        decoded
            .map(Bare::Bytes)
            .map_err(|_| Malformed("a byte sequence is no base64"))
    }

    fn boolean(&mut self) -> Result<Bare, Malformed> {
        match self.next() {
            Some(b'0') => Ok(Bare::Boolean(false)),
            Some(b'1') => Ok(Bare::Boolean(true)),
            _ => Err(Malformed("a boolean is neither ?0 nor ?1")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Bare {
        Bare::Text(text.to_owned())
    }

    #[test]
    fn reads_what_it_writes() {
        for value in ["", "33", "a\"b\\c", "ä/🦀", "100%", "%\"\u{7f}\n"] {
            let item = Item::new(text(value))
                .with("r", text(value))
                .with("flag", Bare::Boolean(true))
                .with("sig", Bare::Bytes(value.as_bytes().to_vec()))
                .with("exp", Bare::Date(-5));
            assert_eq!(Item::parse(item.write().as_bytes()), Ok(item), "{value:?}");
        }
    }

    #[test]
    fn reads_the_forms_of_the_rfc() {
        let mut item = Item::parse(b"  \"33\"; r=\"/a\";n=-12;d=1.5;t=*a/b;no=?0;x  ").unwrap();
        assert_eq!(item.value, text("33"));
        assert_eq!(item.take("r"), Some(text("/a")));
        assert_eq!(item.take("n"), Some(Bare::Integer(-12)));
        assert_eq!(item.take("d"), Some(Bare::Decimal));
        assert_eq!(item.take("t"), Some(Bare::Token("*a/b".to_owned())));
        assert_eq!(item.take("no"), Some(Bare::Boolean(false)));
        assert_eq!(item.take("x"), Some(Bare::Boolean(true)));
        assert_eq!(item.take("x"), None);
    }

    #[test]
    fn refuses_what_is_malformed() {
        for bad in [
            "",
            " ",
            "\"33",
            "\"33\" x",
            "\"33\", \"34\"",
            "\"3\\3\"",
            "\"\u{7f}\"",
            "\"a\nb\"",
            "\"33\";",
            "\"33\";R=1",
            "\"33\";r=1;r=2",
            "\"33\";r=",
            "%\"%4\"",
            "%\"%FF\"",
            "%\"%ff\"",
            "%x",
            ":a:",
            ":YQ==",
            "?2",
            "@1.5",
            "1234567890123456",
            "1.",
            "1.2345",
            "-",
            "é",
        ] {
            assert!(Item::parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
        assert!(Item::parse(&[b'1'; MAX_BYTES + 1]).is_err());
    }

    #[test]
    fn finds_one_member_of_a_dictionary() {
        let digests = b"sha-512=:YQ==:, sha-256=:Yg==:;q=1";
        assert_eq!(
            member(digests, "sha-256"),
            Ok(Some(Bare::Bytes(b"b".to_vec())))
        );
        assert_eq!(member(b"sha-512=:YQ==:", "sha-256"), Ok(None));
        for bad in [
            "",
            "sha-256=:YQ==:,",
            "sha-256=:YQ==: x",
            "sha-256=:YQ==:,sha-256=:YQ==:",
        ] {
            assert!(member(bad.as_bytes(), "sha-256").is_err(), "{bad:?}");
        }
    }
}
