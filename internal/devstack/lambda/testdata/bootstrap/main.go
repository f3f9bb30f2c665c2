// Command bootstrap is the function under test: it does what its payload says.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

type order struct {
	Do   string `json:"do"`
	Gate string `json:"gate"`
	N    int    `json:"n"`
}

type report struct {
	PID         int               `json:"pid"`
	Env         map[string]string `json:"env"`
	RequestID   string            `json:"requestId"`
	FunctionARN string            `json:"functionArn"`
	Deadline    int64             `json:"deadline"`
	TraceID     string            `json:"traceId"`
	Directory   string            `json:"directory"`
}

func handle(ctx context.Context, o order) (any, error) {
	switch o.Do {
	case "report":
		return describe(ctx), nil
	case "gate":
		return pid(), visit(o.Gate)
	case "hang":
		fmt.Println("hanging")
		_ = visit(o.Gate)
		select {}
	case "panic":
		panic("on order")
	case "exit":
		os.Exit(3)
	case "error":
		return nil, errors.New("refused on order")
	case "big":
		return strings.Repeat("x", o.N), nil
	case "print":
		fmt.Println("a line on stdout")
		fmt.Fprint(os.Stderr, "a line without an end")
		os.Exit(0)
	}
	return pid(), nil
}

func pid() map[string]int { return map[string]int{"pid": os.Getpid()} }

// visit reports this process to the test and waits until the test lets it go on.
func visit(gate string) error {
	if gate == "" {
		return nil
	}
	res, err := http.Post(fmt.Sprintf("%s?pid=%d", gate, os.Getpid()), "text/plain", nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return errors.Join(err, res.Body.Close())
}

func describe(ctx context.Context) report {
	lc, _ := lambdacontext.FromContext(ctx)
	deadline, _ := ctx.Deadline()
	env := map[string]string{}
	for _, kv := range os.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	directory, _ := os.Getwd()
	return report{PID: os.Getpid(), Env: env, RequestID: lc.AwsRequestID, FunctionARN: lc.InvokedFunctionArn,
		Deadline: deadline.UnixMilli(), TraceID: os.Getenv("_X_AMZN_TRACE_ID"), Directory: directory}
}

func main() {
	api := "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime"
	switch os.Getenv("START") {
	case "exit":
		fmt.Println("cannot read my configuration")
		os.Exit(7)
	case "init-error":
		body, _ := json.Marshal(map[string]string{"errorType": "Config.Missing", "errorMessage": "INBOX_TABLE is not set"})
		_, _ = http.Post(api+"/init/error", "application/json", bytes.NewReader(body))
		select {}
	case "hang":
		_ = visit(os.Getenv("GATE"))
		select {}
	case "sigterm":
		lambda.StartWithOptions(handle, lambda.WithEnableSIGTERM(func() {
			fmt.Println("flushed")
			os.Exit(0)
		}))
	case "linger":
		linger(api)
	}
	lambda.Start(handle)
}

// linger answers its first invocation and then, instead of asking for the next,
// goes to the gate.
func linger(api string) {
	res, err := http.Get(api + "/invocation/next")
	if err != nil {
		os.Exit(1)
	}
	id := res.Header.Get("Lambda-Runtime-Aws-Request-Id")
	var o order
	_ = json.NewDecoder(res.Body).Decode(&o)
	body, _ := json.Marshal(pid())
	_, _ = http.Post(api+"/invocation/"+id+"/response", "application/json", bytes.NewReader(body))
	_ = visit(o.Gate)
	os.Exit(0)
}
