package egress_test

import (
	"io"
	"log"
)

// quiet keeps a server's complaints about its clients out of the tests' output.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
