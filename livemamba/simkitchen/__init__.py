"""SimKitchen: a simulated kitchen, a proxy for real videos. No result on it is a result on people. No torch."""
