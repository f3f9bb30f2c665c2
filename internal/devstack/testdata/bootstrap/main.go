// Command bootstrap is the binary of every function of the test stack.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"dakghar/internal/devstack/testdata/pipeline"
)

func main() {
	handler, err := pipeline.New(os.Getenv("AWS_LAMBDA_FUNCTION_NAME"), os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(func(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
		return handler(ctx, payload)
	})
}
