package stack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"dakghar/internal/devstack/guard"
	"dakghar/internal/devstack/iam"
)

const (
	typeRole          = "AWS::IAM::Role"
	typePolicy        = "AWS::IAM::Policy"
	typeManagedPolicy = "AWS::IAM::ManagedPolicy"
)

type roleProperties struct {
	RoleName          text
	Policies          []struct{ PolicyName, PolicyDocument any }
	ManagedPolicyArns []text

	AssumeRolePolicyDocument                    ignored // whoever runs a function here plays its role
	PermissionsBoundary                         ignored // an account's own bound, which no template knows
	Description, MaxSessionDuration, Path, Tags ignored // for people
}

func (c *creation) makeRole(_ context.Context, id string, properties any) (Resource, error) {
	var p roleProperties
	if err := decode(properties, &p); err != nil {
		return Resource{}, err
	}
	if len(p.ManagedPolicyArns) > 0 {
		return Resource{}, errors.New("ManagedPolicyArns: the local stack does not know what AWS's policies allow")
	}
	role := iam.Role{Name: id}
	for _, policy := range p.Policies {
		read, err := readPolicy(policy.PolicyDocument)
		if err != nil {
			return Resource{}, fmt.Errorf("%v: %w", policy.PolicyName, err)
		}
		role.Policy = append(role.Policy, read...)
	}
	name := c.physicalName(p.RoleName, id)
	c.roles[name] = &role
	return Resource{Ref: name, Attributes: map[string]string{"Arn": roleARN(name)}}, nil
}

func roleARN(name string) string { return "arn:aws:iam::" + Account + ":role/" + name }

type policyProperties struct {
	PolicyName, ManagedPolicyName text
	PolicyDocument                any
	Roles                         []text

	Description, Path ignored // for people
	Users, Groups     ignored // no function is one
}

// makePolicy reads a policy that is attached to roles. It is made after them,
// since it names them.
func (c *creation) makePolicy(_ context.Context, id string, properties any) (Resource, error) {
	var p policyProperties
	if err := decode(properties, &p); err != nil {
		return Resource{}, err
	}
	policy, err := readPolicy(p.PolicyDocument)
	if err != nil {
		return Resource{}, err
	}
	for _, name := range p.Roles {
		role, ours := c.roles[string(name)]
		if !ours {
			return Resource{}, fmt.Errorf("role %s is none of this stack", name)
		}
		c.attached[role] = append(c.attached[role], attachment{id, policy})
	}
	return Resource{Ref: id}, nil
}

// attachment is a policy beside a role's own.
type attachment struct {
	id     string
	policy iam.Policy
}

// giveRoles says what each function may do, once every policy is known. Policies
// that are attached follow a role's own in the order of their logical ids.
func (c *creation) giveRoles() error {
	for role, attached := range c.attached {
		slices.SortFunc(attached, func(a, b attachment) int { return cmp.Compare(a.id, b.id) })
		for _, a := range attached {
			role.Policy = append(role.Policy, a.policy...)
		}
	}
	byARN := map[string]*iam.Role{}
	for name, role := range c.roles {
		byARN[roleARN(name)] = role
	}
	for _, id := range slices.Sorted(maps.Keys(c.roleARNs)) {
		role, ours := byARN[c.roleARNs[id]]
		if !ours {
			return fmt.Errorf("%s: role %s is none of this stack", id, c.roleARNs[id])
		}
		c.stack.Roles[id] = *role
	}
	return nil
}

// Guard is what holds the functions of this stack to their roles.
func (s *Stack) Guard(logf func(format string, args ...any)) guard.Config {
	return guard.Config{
		Account: Account, Region: s.Region, Roles: s.Roles,
		Tables: s.TableARNs, PartitionKeys: s.PartitionKeys, BucketKeys: s.BucketKeys, Logf: logf,
	}
}

// readPolicy reads a policy document. A resource that is not created locally,
// such as a log group, stays in it by its name in the template: no call reaches it.
func readPolicy(document any) (iam.Policy, error) {
	encoded, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	return iam.Parse(marks().ReplaceAll(encoded, []byte("$1.$2")))
}
