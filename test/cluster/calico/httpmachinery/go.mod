// Nothing that is built imports it, and the module proxy does not serve it; but the graph of modules has to be whole.
module github.com/projectcalico/calico/lib/httpmachinery

go 1.26.8
