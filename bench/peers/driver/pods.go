package main

import (
	"fmt"
	"net/url"
	"time"
)

type containerStatus struct {
	Name         string `json:"name"`
	ContainerID  string `json:"containerID"`
	RestartCount int    `json:"restartCount"`
}

type ownerReference struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

type pod struct {
	Metadata struct {
		Name            string           `json:"name"`
		Namespace       string           `json:"namespace"`
		UID             string           `json:"uid"`
		Deletion        string           `json:"deletionTimestamp"`
		OwnerReferences []ownerReference `json:"ownerReferences"`
	} `json:"metadata"`
	Status struct {
		Conditions            []condition       `json:"conditions"`
		ContainerStatuses     []containerStatus `json:"containerStatuses"`
		InitContainerStatuses []containerStatus `json:"initContainerStatuses"`
	} `json:"status"`
}

func (p pod) path() string { return core(p.Metadata.Namespace, "pods") + "/" + p.Metadata.Name }

func (p pod) ready() bool {
	for _, each := range p.Status.Conditions {
		if each.Type == "Ready" && each.Status == "True" && p.Metadata.Deletion == "" {
			return true
		}
	}
	return false
}

func podsOf(api *API, pods Pods) ([]pod, error) {
	var list struct {
		Items []pod `json:"items"`
	}
	err := api.get(core(pods.Namespace, "pods")+"?labelSelector="+url.QueryEscape(pods.Selector), &list)
	return list.Items, err
}

// replaced waits until as many pods as before are ready, none of them one of before.
func replaced(api *API, pods Pods, before []pod, limit time.Duration) (time.Duration, error) {
	old := map[string]bool{}
	for _, each := range before {
		old[each.Metadata.UID] = true
	}
	began := time.Now()
	for time.Since(began) < limit {
		now, err := podsOf(api, pods)
		ready, remaining := 0, 0
		for _, each := range now {
			switch {
			case old[each.Metadata.UID] && each.Metadata.Deletion == "":
				remaining++
			case !old[each.Metadata.UID] && each.ready():
				ready++
			}
		}
		if err == nil && ready >= len(before) && remaining == 0 {
			return time.Since(began), nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return 0, fmt.Errorf("no new pods of %s were ready after %v", pods.Selector, limit)
}

// deploymentOf is the path of the Deployment that owns a pod.
func deploymentOf(api *API, of pod) (string, error) {
	for _, owner := range of.Metadata.OwnerReferences {
		if owner.Kind != "ReplicaSet" {
			continue
		}
		var set struct {
			Metadata struct {
				OwnerReferences []ownerReference `json:"ownerReferences"`
			} `json:"metadata"`
		}
		apps := "/apis/apps/v1/namespaces/" + of.Metadata.Namespace
		if err := api.get(apps+"/replicasets/"+owner.Name, &set); err != nil {
			return "", err
		}
		for _, above := range set.Metadata.OwnerReferences {
			if above.Kind == "Deployment" {
				return apps + "/deployments/" + above.Name, nil
			}
		}
	}
	return "", fmt.Errorf("pod %s belongs to no Deployment", of.Metadata.Name)
}
