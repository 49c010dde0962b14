use std::fmt::Write as _;

/// Text as an SQL expression, whatever it holds: no character of it is ever read as SQL.
pub(super) fn text(text: &str) -> String {
    format!("convert_from({}, 'UTF8')", bytes(text.as_bytes()))
}

/// Bytes as an SQL expression.
pub(super) fn bytes(bytes: &[u8]) -> String {
    let mut literal = String::with_capacity(2 * bytes.len() + 16);
    literal.push_str("decode('");
    for byte in bytes {
        write!(literal, "{byte:02x}").expect("a string takes all");
    }
    literal.push_str("', 'hex')");
    literal
}

/// An expression, or that there is none.
pub(super) fn or_null(expression: Option<String>) -> String {
    expression.unwrap_or_else(|| "NULL".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_left_to_be_read_as_sql() {
        let hostile = "'; DROP TABLE stock; --\\";
        let literal = text(hostile);
        assert_eq!(
            literal,
            "convert_from(decode('273b2044524f50205441424c452073746f636b3b202d2d5c', 'hex'), 'UTF8')"
        );
        assert_eq!(bytes(&[]), "decode('', 'hex')");
    }
}
