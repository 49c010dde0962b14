//! How a cluster spreads keys over its nodes (Redis Cluster Specification, "Key distribution
//! model").

use std::sync::LazyLock;

pub(crate) const COUNT: u16 = 16_384;

/// The slot of a key.
pub(crate) fn of(key: &[u8]) -> u16 {
    crc(tag(key)) % COUNT
}

/// What counts of a key: the text in its first pair of braces, if there is some, else all of it.
pub(crate) fn tag(key: &[u8]) -> &[u8] {
    let tag = key.iter().position(|&byte| byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|&byte| byte == b'}')?;
        Some(&rest[..close])
    });
    tag.filter(|tag| !tag.is_empty()).unwrap_or(key)
}

/// The smallest number that is, as a tag, in this slot.
pub(crate) fn number_in(slot: u16) -> u32 {
    static NUMBERS: LazyLock<Vec<u32>> = LazyLock::new(|| {
        let mut numbers = vec![None; usize::from(COUNT)];
        let mut missing = COUNT;
        for number in 0.. {
            let slot = of(number.to_string().as_bytes());
            if numbers[usize::from(slot)].is_none() {
                numbers[usize::from(slot)] = Some(number);
                missing -= 1;
            }
            if missing == 0 {
                break;
            }
        }
        numbers.into_iter().flatten().collect()
    });
    NUMBERS[usize::from(slot)]
}

/// CRC-16/XMODEM.
fn crc(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, &byte| {
        let index = (crc >> 8) ^ u16::from(byte);
        (crc << 8) ^ TABLE[usize::from(index)]
    })
}

static TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut index: u16 = 0;
    while index < 256 {
        let mut crc = index << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc << 1) ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 };
            bit += 1;
        }
        table[index as usize] = crc;
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc(b"123456789"), 0x31c3);
        assert_eq!(of(b"foo{}{bar}"), crc(b"foo{}{bar}") % COUNT);
        assert_eq!(of(b"foo{{bar}}zap"), crc(b"{bar") % COUNT);
        assert_eq!(of(b"foo{bar}{zap}"), crc(b"bar") % COUNT);
        assert_eq!(of(b"{user1000}.following"), of(b"{user1000}.followers"));
    }

    #[test]
    fn each_slot_has_a_number() {
        for slot in 0..COUNT {
            assert_eq!(of(number_in(slot).to_string().as_bytes()), slot);
        }
    }
}
