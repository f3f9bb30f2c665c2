package webhook

import "strconv"

// HopsHeader carries, lower-case, how many deliveries of a service like this one
// led to a request. It is not signed: it ends circles, and proves nothing. A
// service between two of them has to pass it on.
const HopsHeader = "dakghar-hops"

// HopsMax is how many deliveries may follow one from another. The next one is not
// sent: a chain as long as that leads back to where it began.
const HopsMax = 4

// ParseHops reads the value of [HopsHeader]; none is 0. What cannot be read counts
// as a whole chain, since nobody else sends such a header.
func ParseHops(text string) int {
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 8)
	if err != nil || n > HopsMax {
		return HopsMax
	}
	return int(n)
}
