module github.com/knotmeter/knotmeter/test/cluster

go 1.26.8
