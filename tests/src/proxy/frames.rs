//! ZooKeeper's requests and replies within the bytes of a connection.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::lane::Parcel;
use super::listener::Network;
use super::operation::Operation;
use super::rules::Way;
use super::traffic::Request;
use super::traps::{Fault, Trap};

/// Longer "frames" are four-letter words, or TLS.
const LONGEST_FRAME: usize = 1 << 26;
const LENGTH: usize = 4;

/// The traps of one connection whose request has passed and whose reply has not, by xid.
pub(super) type Awaited = Arc<Mutex<HashMap<i32, Trap>>>;

/// Cuts one way of a connection into what is delivered, dropped or fatal as a whole.
#[derive(Debug)]
pub(super) struct Frames {
    way: Way,
    network: Arc<Network>,
    awaited: Awaited,
    framed: bool,
    greeted: bool,
}

impl Frames {
    pub(super) fn new(way: Way, network: &Arc<Network>, awaited: &Awaited) -> Self {
        let network = Arc::clone(network);
        let framed = network.framed;
        Self {
            way,
            framed,
            network,
            awaited: Arc::clone(awaited),
            greeted: false,
        }
    }

    /// Takes from `bytes` what is complete.
    pub(super) fn next(&mut self, bytes: &mut Vec<u8>) -> Option<Parcel> {
        if self.framed && length(bytes)? > LONGEST_FRAME {
            self.framed = false;
        }
        if !self.framed {
            let chunk = mem::take(bytes);
            return (!chunk.is_empty()).then(|| Parcel::Bytes(self.renamed(chunk)));
        }
        let end = LENGTH + length(bytes)?;
        if bytes.len() < end {
            return None;
        }
        let rest = bytes.split_off(end);
        let frame = mem::replace(bytes, rest);
        // The first of each way opens the session, and has another shape.
        if !mem::replace(&mut self.greeted, true) {
            return Some(Parcel::Bytes(frame));
        }
        Some(match self.way {
            Way::ToServer => self.request(frame),
            Way::ToClient => self.reply(frame),
        })
    }

    fn renamed(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        let first = self.way == Way::ToServer && !mem::replace(&mut self.greeted, true);
        if let Some((from, to)) = self.network.renamed.get().filter(|_| first) {
            let at = bytes
                .windows(from.len())
                .position(|window| window == from.as_bytes());
            if let Some(at) = at {
                bytes.splice(at..at + from.len(), to.bytes());
            }
        }
        bytes
    }

    fn request(&self, frame: Vec<u8>) -> Parcel {
        let Some(request) = parsed(&frame[LENGTH..]) else {
            return Parcel::Bytes(frame);
        };
        match self.network.traps.take(&request) {
            Some(trap) if trap.fault == Fault::CutAtRequest => return Parcel::Cut(trap),
            Some(trap) => {
                self.awaited().insert(request.xid, trap);
            }
            None => {}
        }
        Parcel::Request(request, frame)
    }

    fn reply(&self, frame: Vec<u8>) -> Parcel {
        let xid = integer(&frame, LENGTH);
        let Some(trap) = xid.and_then(|xid| self.awaited().remove(&xid)) else {
            return Parcel::Bytes(frame);
        };
        if trap.fault == Fault::CutAtReply {
            Parcel::Cut(trap)
        } else {
            Parcel::Dropped(trap)
        }
    }

    fn awaited(&self) -> std::sync::MutexGuard<'_, HashMap<i32, Trap>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn parsed(record: &[u8]) -> Option<Request> {
    let operation = Operation::from_code(integer(record, 4)?);
    let path = operation.names_node().then(|| text(record, 8)).flatten();
    let watch = operation.may_watch() && record.last() == Some(&1);
    Some(Request {
        operation,
        path,
        watch,
        at: Instant::now(),
        xid: integer(record, 0)?,
    })
}

fn text(record: &[u8], at: usize) -> Option<String> {
    let bytes = record.get(at + LENGTH..)?.get(..length(&record[at..])?)?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

fn length(bytes: &[u8]) -> Option<usize> {
    // A negative length is no frame either.
    Some(usize::try_from(integer(bytes, 0)?).unwrap_or(usize::MAX))
}

fn integer(bytes: &[u8], at: usize) -> Option<i32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(i32::from_be_bytes(*bytes))
}
