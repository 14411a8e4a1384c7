package main

import (
	"fmt"
	"time"
)

const (
	restartLimit = 180 * time.Second
	afterRestart = 10 * time.Second
)

// Restart is what an end and a new start of pods cost when nothing else changes.
type Restart struct {
	ReadySeconds float64    `json:"readySeconds"`
	Problem      string     `json:"problem,omitempty"`
	Writes       Writes     `json:"writes"`
	StatusWrites int        `json:"statusWrites"`
	Others       Bystanders `json:"others"`
	// ServedSeconds is until a route that is posted right after the end is served.
	ServedSeconds float64 `json:"servedSeconds,omitempty"`
}

// Restarts of everything at one size.
type Restarts struct {
	Controller       Restart `json:"controller"`
	ControllerChange Restart `json:"controllerChange"`
	DataPlaneRollout Restart `json:"dataPlaneRollout"`
	DataPlaneLoss    Restart `json:"dataPlaneLoss"`
}

func (d *Driver) restarts() Restarts {
	// What follows from the changes of before must not be counted here.
	if _, err := d.audit.mark().quiet(calm, 60*time.Second); err != nil {
		logf("before the restarts: %v", err)
	}
	return Restarts{
		Controller:       d.restart("controller", d.config.ControllerPods, d.deletePods(nil)),
		ControllerChange: d.restartAndChange(),
		DataPlaneRollout: d.restart("data plane, rolled out", d.config.DataPlanePods, d.rollOut),
		DataPlaneLoss:    d.restart("data plane, lost", d.config.DataPlanePods, d.deletePods(content{"gracePeriodSeconds": 0})),
	}
}

// restart ends all pods in the given way, and waits for the new ones and then for silence.
func (d *Driver) restart(what string, pods Pods, end func([]pod) error) Restart {
	result := Restart{}
	d.regulars.take()
	count := d.audit.mark()
	before, err := podsOf(d.api, pods)
	if err == nil {
		err = end(before)
	}
	if err == nil {
		var took time.Duration
		took, err = replaced(d.api, pods, before, restartLimit)
		result.ReadySeconds = took.Seconds()
	}
	if err != nil {
		result.Problem = err.Error()
	}
	time.Sleep(afterRestart)
	writes, err := count.quiet(calm, 60*time.Second)
	if err != nil {
		result.Problem = err.Error()
	}
	result.Writes, result.StatusWrites, result.Others = writes, writes.statuses(), d.regulars.take()
	logf("%s: ready after %.1f s, %d status writes, %d of %d requests failed %v %s", what, result.ReadySeconds,
		result.StatusWrites, result.Others.Failed, result.Others.Requests, result.Others.Reasons, result.Problem)
	return result
}

func (d *Driver) deletePods(options any) func([]pod) error {
	return func(pods []pod) error {
		for _, each := range pods {
			if err := d.api.remove(each.path(), options); err != nil {
				return err
			}
		}
		return nil
	}
}

// rollOut is what `kubectl rollout restart` does.
func (d *Driver) rollOut(pods []pod) error {
	if len(pods) == 0 {
		return fmt.Errorf("there are no pods")
	}
	deployment, err := deploymentOf(d.api, pods[0])
	if err != nil {
		return err
	}
	annotations := content{"kubectl.kubernetes.io/restartedAt": time.Now().Format(time.RFC3339)}
	template := content{"metadata": content{"annotations": annotations}}
	return d.api.patch(deployment, content{"spec": content{"template": template}})
}

// restartAndChange ends the controller and posts a route at once.
func (d *Driver) restartAndChange() Restart {
	result := Restart{}
	d.regulars.take()
	before, err := podsOf(d.api, d.config.ControllerPods)
	if err == nil {
		err = d.deletePods(nil)(before)
	}
	d.changes++
	each, failure := d.newRoute(d.changes)
	if err == nil {
		err = failure
	}
	if err == nil {
		err = each.post()
	}
	if err != nil {
		return Restart{Problem: err.Error()}
	}
	took, arrived := awaited(each.arrived, restartLimit)
	each.end()
	if !arrived {
		result.Problem = fmt.Sprintf("a new route was not served after %v", restartLimit)
	}
	result.ServedSeconds = took.Seconds()
	ready, err := replaced(d.api, d.config.ControllerPods, before, restartLimit)
	if err != nil {
		result.Problem = err.Error()
	}
	result.ReadySeconds = max(took, took+ready).Seconds()
	if err := each.undo(); err != nil {
		result.Problem = err.Error()
	}
	time.Sleep(calm)
	result.Others = d.regulars.take()
	logf("controller: a change is served after %.1f s %s", result.ServedSeconds, result.Problem)
	return result
}
