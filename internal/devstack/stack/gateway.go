package stack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	typeAPI         = "AWS::ApiGatewayV2::Api"
	typeStage       = "AWS::ApiGatewayV2::Stage"
	typeIntegration = "AWS::ApiGatewayV2::Integration"
	typeRoute       = "AWS::ApiGatewayV2::Route"
)

// gateway gathers the parts of the one HTTP API: routes, what they lead to, and
// their throttles, which the stage holds.
type gateway struct {
	api          string
	integrations map[string]integration // by logical id
	routes       []routeProperties
	throttles    map[string]routeSettings // by route key
	otherwise    routeSettings
}

type integration struct {
	function string
	timeout  time.Duration
}

func newGateway() *gateway {
	return &gateway{integrations: map[string]integration{}, throttles: map[string]routeSettings{}}
}

type apiProperties struct {
	Name, ProtocolType                           text
	Description, DisableExecuteApiEndpoint, Tags ignored // for people, or for a host name that is not here
}

func (c *creation) makeAPI(_ context.Context, id string, properties any) (Resource, error) {
	var p apiProperties
	if err := decode(properties, &p); err != nil {
		return Resource{}, err
	}
	if p.ProtocolType != "HTTP" {
		return Resource{}, fmt.Errorf("ProtocolType %q: the local stack knows HTTP only", p.ProtocolType)
	}
	if c.gateway.api != "" {
		return Resource{}, fmt.Errorf("the local stack has one front door, and that is %s", c.gateway.api)
	}
	c.gateway.api = id
	return Resource{Ref: id, Attributes: map[string]string{"ApiId": id}}, nil
}

type routeSettings struct {
	ThrottlingRateLimit    rate
	ThrottlingBurstLimit   number
	DetailedMetricsEnabled ignored // nobody collects metrics on one machine
}

type stageProperties struct {
	ApiId, StageName     text
	DefaultRouteSettings routeSettings
	RouteSettings        map[string]routeSettings
	AutoDeploy           flag
	AccessLogSettings    ignored // logs go to the terminal
	Description, Tags    ignored
}

func (c *creation) makeStage(_ context.Context, id string, properties any) (Resource, error) {
	var p stageProperties
	if err := decode(properties, &p); err != nil {
		return Resource{}, err
	}
	switch {
	case p.StageName != "$default":
		return Resource{}, fmt.Errorf("StageName %q: the local stack knows $default only, which adds nothing to paths", p.StageName)
	case !bool(p.AutoDeploy):
		return Resource{}, errors.New("without AutoDeploy the routes would need a deployment")
	}
	c.gateway.throttles, c.gateway.otherwise = p.RouteSettings, p.DefaultRouteSettings
	return Resource{Ref: id}, nil
}

type integrationProperties struct {
	ApiId, IntegrationType, IntegrationUri, PayloadFormatVersion, IntegrationMethod, ConnectionType text
	TimeoutInMillis                                                                                 *number
	Description, CredentialsArn                                                                     ignored
}

func (c *creation) makeIntegration(_ context.Context, id string, properties any) (Resource, error) {
	var p integrationProperties
	if err := decode(properties, &p); err != nil {
		return Resource{}, err
	}
	if p.IntegrationType != "AWS_PROXY" || p.PayloadFormatVersion != "2.0" {
		return Resource{}, fmt.Errorf("%s with payload format %s: the local stack knows AWS_PROXY with 2.0 only", p.IntegrationType, p.PayloadFormatVersion)
	}
	timeout := time.Duration(orElse(p.TimeoutInMillis, 30_000)) * time.Millisecond
	if timeout < 50*time.Millisecond || timeout > 30*time.Second {
		return Resource{}, fmt.Errorf("TimeoutInMillis %v is not within 50 ms and 30 s", timeout)
	}
	for function, r := range c.stack.Functions {
		// The URI is the ARN of the function or of its alias, or that ARN within an API Gateway one.
		uri := string(p.IntegrationUri) + "/"
		if strings.Contains(uri, r.ARN+"/") || r.Alias != "" && strings.Contains(uri, r.ARN+":"+r.Alias+"/") {
			c.gateway.integrations[id] = integration{function: function, timeout: timeout}
			return Resource{Ref: id}, nil
		}
	}
	return Resource{}, fmt.Errorf("IntegrationUri %q is no function of this stack", p.IntegrationUri)
}

type routeProperties struct {
	ApiId, RouteKey, Target text
	AuthorizationType       text
	OperationName           ignored // for people
}

func (c *creation) makeRoute(_ context.Context, id string, properties any) (Resource, error) {
	var p routeProperties
	if err := decode(properties, &p); err != nil {
		return Resource{}, err
	}
	if p.AuthorizationType != "" && p.AuthorizationType != "NONE" {
		return Resource{}, fmt.Errorf("AuthorizationType %q: the local stack has no authorisers", p.AuthorizationType)
	}
	c.gateway.routes = append(c.gateway.routes, p)
	return Resource{Ref: id}, nil
}

// addRoutes puts the parts together once all of them are known.
func (g *gateway) addRoutes(s *Stack) error {
	for _, p := range g.routes {
		target, ok := g.integrations[strings.TrimPrefix(string(p.Target), "integrations/")]
		if !ok {
			return fmt.Errorf("route %s: target %q is no integration of this stack", p.RouteKey, p.Target)
		}
		throttle, own := g.throttles[string(p.RouteKey)]
		if !own {
			throttle = g.otherwise
		}
		s.Routes = append(s.Routes, Route{
			Key: string(p.RouteKey), Function: target.function, Timeout: target.timeout,
			RatePerSecond: float64(throttle.ThrottlingRateLimit), Burst: int(throttle.ThrottlingBurstLimit),
		})
	}
	for key := range g.throttles {
		if !slices.ContainsFunc(s.Routes, func(r Route) bool { return r.Key == key }) {
			return fmt.Errorf("RouteSettings of %q, which is no route", key)
		}
	}
	return nil
}
