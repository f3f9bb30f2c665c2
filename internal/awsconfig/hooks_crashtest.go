//go:build crashtest

package awsconfig

import (
	"os"

	"github.com/aws/smithy-go/middleware"

	"dakghar/internal/crashtest"
)

// hooks lets a test kill this process at a named point; see package crashtest.
func hooks() []func(*middleware.Stack) error { return crashtest.Hooks(os.Getenv) }
