package devstack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dakghar/internal/devstack/lambda"
	"dakghar/internal/devstack/stack"
)

// createFunctions makes every declared function ready to be invoked. All that is
// missing is told at once.
func (s *Stack) createFunctions(ctx context.Context) error {
	for _, id := range slices.Concat(slices.Collect(maps.Keys(s.options.InProcess)), slices.Collect(maps.Keys(s.options.FunctionEnv))) {
		if _, ok := s.declared.Functions[id]; !ok {
			return fmt.Errorf("function %s, named by an option, is not in the template", id)
		}
	}
	var missing []error
	for _, id := range slices.Sorted(maps.Keys(s.declared.Functions)) {
		f, err := s.newFunction(ctx, id, s.declared.Functions[id])
		if errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, fmt.Errorf("%s is not built: run `make build`", s.bootstrap(id)))
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		s.functions[id] = f
	}
	return errors.Join(missing...)
}

func (s *Stack) bootstrap(id string) string {
	return filepath.Join(s.options.BuildDir, id, "bootstrap")
}

func (s *Stack) newFunction(ctx context.Context, id string, f stack.Function) (lambda.Function, error) {
	env := s.environment(id, f)
	if factory, ok := s.options.InProcess[id]; ok {
		handler, err := factory(ctx, func(name string) string { return env[name] })
		if err != nil {
			return nil, err
		}
		return lambda.NewInProcess(lambda.InProcessConfig{
			Name: id, ARN: f.ARN, Timeout: f.Timeout, Reserved: f.Reserved, Handler: handler, Log: s.options.FunctionLog, NewID: newID,
		})
	}
	bootstrap, err := filepath.Abs(s.bootstrap(id))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(bootstrap); err != nil {
		return nil, err
	}
	return lambda.New(lambda.Config{
		Name: id, ARN: f.ARN, Handler: f.Handler, Bootstrap: bootstrap, TaskRoot: filepath.Dir(bootstrap), Region: region,
		MemoryMB: f.MemoryMB, Env: env, Timeout: f.Timeout, Reserved: f.Reserved, SandboxesMax: s.options.SandboxesMax,
		Background: !slices.ContainsFunc(s.declared.Routes, func(r stack.Route) bool { return r.Function == id }),
		Log:        s.options.FunctionLog, Now: s.options.Clock.Now, NewID: newID,
	})
}

// processorMB is the memory that brings one processor.
// Source: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
const processorMB = 1769

// environment is the function's own variables and what leads its SDK here.
func (s *Stack) environment(id string, f stack.Function) map[string]string {
	env := map[string]string{
		"AWS_REGION":            region,
		"AWS_ACCESS_KEY_ID":     id, // it is known by that, see package guard
		"AWS_SECRET_ACCESS_KEY": "local",
		"AWS_ENDPOINT_URL":      s.awsURL,
		// Partners may be on this machine too. Where the services are not, this is refused.
		"ALLOW_LOOPBACK": "true",
		// On Lambda a function has a whole processor's time only from this much memory on.
		"GOMAXPROCS": strconv.Itoa(max(1, f.MemoryMB/processorMB)),
	}
	if s.options.ProviderAPI != "" {
		env["PROVIDER_API_BASE"] = s.options.ProviderAPI
	}
	maps.Copy(env, f.Env)
	if _, wanted := env["OWN_HOSTS"]; wanted { // the template knows the one of AWS
		env["OWN_HOSTS"] = strings.TrimPrefix(s.doorURL, "http://")
	}
	if env["FRONT_DOOR_URL"] != "" {
		env["FRONT_DOOR_URL"] = s.doorURL // it is here, whatever its name is in the template
	}
	maps.Copy(env, s.options.FunctionEnv[id])
	return env
}
