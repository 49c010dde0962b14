struct Id<T: Kind> {
    number: T,
    of: PhantomData<T>,
}
#[automatically_derived]
impl<T: Kind> ::fenced::LockSegment for Id<T>
where
    T: ::fenced::LockSegment,
{
    fn text(&self) -> ::fenced::__private::Cow<'_, str> {
        <T as ::fenced::LockSegment>::text(&self.number)
    }
}
