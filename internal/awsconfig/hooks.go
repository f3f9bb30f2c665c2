//go:build !crashtest

package awsconfig

import "github.com/aws/smithy-go/middleware"

// hooks are none: a program built for use cannot be told to die.
func hooks() []func(*middleware.Stack) error { return nil }
