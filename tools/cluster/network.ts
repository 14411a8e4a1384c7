// Addresses inside a cluster's own network namespace. Every cluster uses the same ones: namespaces
// do not meet.

export const nodeName = "node0";
export const nodeAddress = "172.30.0.1";
export const nodeNetwork = "172.30.0.0/16";
/**
 * Nobody answers there; the default route only makes service addresses routable so that kube-proxy
 * can rewrite them.
 */
export const defaultGateway = "172.30.255.254";
export const podNetwork = "10.244.0.0/16";
export const serviceNetwork = "10.96.0.0/16";
export const firstServiceAddress = "10.96.0.1";

/** LoadBalancer addresses given to Services that ask for none. */
export const dynamicAddresses = "172.30.16.0/20";
/** LoadBalancer addresses given only to those who ask for them by name. */
export const staticAddresses = "172.30.15.0/24";
export const usableAddress = "172.30.15.1";
/** Outside both ranges (and a documentation address): the load balancer refuses it. */
export const unusableAddress = "203.0.113.7";

export const apiServer = { host: "127.0.0.1", port: 6443 } as const;
